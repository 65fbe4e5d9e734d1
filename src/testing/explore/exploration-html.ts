import { htmlFile } from '../../inspect/html.js'
import { tag } from '../../inspect/markup.js'
import { svgElement } from '../../inspect/svg.js'
import { unpainted } from '../../inspect/theme.js'
import type { ExplorationData } from './exploration.js'
import { explorationDrawing } from './exploration-svg.js'
import { explorationText, headline } from './exploration-text.js'

/** One page that needs nothing beside it: what was found, the picture, the outcomes, what was not explored. */
export function explorationHtml(data: ExplorationData): string {
  return htmlFile(
    `Race check of ${data.definition}`,
    tag('h1', {}, headline(data, unpainted)),
    tag('p', {}, `Strategy ${data.strategy}, seed ${data.seed}; ${data.exhaustive ? 'every order' : 'not every order'}.`),
    tag('div', { class: 'picture' }, svgElement(explorationDrawing(data))),
    tag('h2', {}, 'Outcomes'),
    tag(
      'table',
      {},
      tag('tr', {}, tag('th', {}, 'outcome'), tag('th', {}, 'status'), tag('th', {}, 'schedules'), tag('th', {}, 'the first of them')),
      data.outcomes.map(({ digest, status, count, schedule }) =>
        tag('tr', {}, tag('td', {}, digest), tag('td', {}, status), tag('td', {}, count), tag('td', {}, schedule)),
      ),
    ),
    tag('h2', {}, 'In full'),
    tag(
      'pre',
      {},
      explorationText(data, unpainted)
        .split('\n')
        .map((line) => [line, tag('br')]),
    ),
  )
}
