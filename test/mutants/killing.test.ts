/**
 * `npm run mutants`: plants every mutant and prints which check sees it, after how many schedules. All of them are to be seen.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { explore } from 'tutti/testing'
import { expect, test } from 'vitest'
import type { reportOf } from '../../src/inspect/report.js'
import type { Decide } from '../reference/side-by-side.js'
import { engineMutants } from './engine-mutants.js'
import type { Hunted } from './hunt.js'
import { huntGraphs, huntTopologies, huntUndoing } from './hunt.js'
import { graphMutants, topologyMutants, undoMutants } from './kernel-mutants.js'
import type { Mutant } from './mutant.js'
import { Planted } from './mutant.js'
import { strategies } from './orders.js'
import { userMutants } from './user-mutants.js'

const wanted = process.env['TUTTI_MUTANTS'] ?? ''
const budget = Number(process.env['TUTTI_MUTANTS_BUDGET'] ?? 6_000)
const names = Object.keys(strategies) as (keyof typeof strategies)[]

function tell(name: string, found: readonly Hunted[]): void {
  process.stdout.write(`${name.padEnd(66)}${found.map((one) => String(one ?? '-').padStart(12)).join('')}\n`)
}

/** Each strategy hunts on its own; a mutant is killed if one of them sees it. */
async function killed(
  mutant: Mutant,
  hunt: (decides: Decide, strategy: keyof typeof strategies, reports: typeof reportOf) => Hunted,
): Promise<boolean> {
  using planted = new Planted(mutant)
  const { decide } = await planted.load<{ decide: Decide }>('kernel/decide.js')
  const reports = (await planted.load<{ reportOf: typeof reportOf }>('inspect/report.js')).reportOf
  const found = names.map((strategy) => hunt(decide, strategy, reports))
  tell(mutant.name, found)
  return found.some((one) => one !== null)
}

const group = (title: string, run: () => Promise<readonly string[]>): void =>
  test.skipIf(wanted === '')(`every mutant of ${title} is killed`, { timeout: 3_600_000 }, async () => {
    process.stdout.write(`\n${title.padEnd(66)}${names.map((name) => name.padStart(12)).join('')}\n`)
    expect(await run()).toEqual([])
  })

async function survivors(mutants: readonly Mutant[], hunt: Parameters<typeof killed>[1]): Promise<string[]> {
  const left: string[] = []
  for (const mutant of mutants) if (!(await killed(mutant, hunt))) left.push(mutant.name)
  return left
}

// What `npm test` has time for: the search can find something, and what it finds is there.
for (const name of [
  'a merge in order of arrival',
  'a join in order of arrival',
  'failing fast that is not labelled',
  'a completion of another attempt that is taken',
])
  test(`the search finds ${name}`, { timeout: 120_000 }, async () => {
    const mutant = topologyMutants.find((one) => one.name === name)
    if (mutant === undefined) throw new Error(`there is no mutant called ${name}`)
    using planted = new Planted(mutant)
    const { decide } = await planted.load<{ decide: Decide }>('kernel/decide.js')
    expect(huntTopologies(decide, strategies['random walk'], 2_000)).not.toBeNull()
  })

group('topologies', () => survivors(topologyMutants, (decides, strategy) => huntTopologies(decides, strategies[strategy], budget)))
group('undoing', () => survivors(undoMutants, (decides, strategy) => huntUndoing(decides, strategies[strategy], budget)))
group('graphs', () =>
  survivors(graphMutants, (decides, strategy, reports) => (strategy === 'random walk' ? huntGraphs(decides, reports, budget) : null)),
)

test.skipIf(wanted === '')('every mutant of user code is killed by the race check', { timeout: 3_600_000 }, async () => {
  const how = ['exhaustive', 'deviations', 'pct', 'coverage', 'random'] as const
  process.stdout.write(`\n${'user code'.padEnd(66)}${how.map((name) => name.padStart(12)).join('')}\n`)
  for (const { name, make, resources } of userMutants) {
    const found: Hunted[] = []
    for (const strategy of how) {
      const result = await explore(make as never, { strategy, schedules: 2_000, ...(resources !== undefined && { resources }) })
      found.push(result.independent ? null : result.schedules)
    }
    tell(name, found)
    expect(
      found.some((one) => one !== null),
      name,
    ).toBe(true)
  }
})

test.skipIf(wanted === '')('every mutant of the engine is killed by the suite', { timeout: 3_600_000 }, () => {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  process.stdout.write('\nengine and stores\n')
  const left = engineMutants.flatMap((mutant) => {
    using planted = new Planted(mutant)
    const run = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--bail', '1', ...mutant.suite], {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, TUTTI_DIST: planted.url, TUTTI_MUTANTS: '', NO_COLOR: '1' },
    })
    const by = /FAIL\s+(\S+)/.exec(run.stdout)?.[1]
    process.stdout.write(`${mutant.name.padEnd(66)}${run.status === 0 ? 'survives' : `killed by ${by ?? mutant.suite[0]}`}\n`)
    return run.status === 0 ? [mutant.name] : []
  })
  expect(left).toEqual([])
})
