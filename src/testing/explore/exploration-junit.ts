import { plain, xml } from '../../inspect/escape.js'
import { unpainted } from '../../inspect/theme.js'
import type { ExplorationData } from './exploration.js'
import { explorationText, headline } from './exploration-text.js'

/** The findings as JUnit has them: one case per race check, failed if something was found. */
export function explorationJunit(data: ExplorationData): string {
  const failures = data.independent ? 0 : 1
  const name = `the outcome of ${plain(data.definition)} does not depend on the order`
  const text = explorationText(data, unpainted).split('\n').map(xml).join('\n')
  const found =
    failures === 0
      ? `<system-out>${text}</system-out>`
      : `<failure type="${xml(data.violations[0]?.invariant ?? data.divergence?.kind ?? '')}" message="${xml(headline(data, unpainted))}">${text}</failure>`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites tests="1" failures="${failures}">`,
    `  <testsuite name="tutti check" tests="1" failures="${failures}">`,
    '    <properties>',
    ...Object.entries({ schedules: data.schedules, distinct: data.distinct, exhaustive: data.exhaustive, seed: data.seed }).map(
      ([key, value]) => `      <property name="${key}" value="${xml(String(value))}"/>`,
    ),
    '    </properties>',
    `    <testcase classname="${xml(plain(data.definition))}" name="${xml(name)}">${found}</testcase>`,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}
