import { plain } from '../../inspect/escape.js'
import type { Paint } from '../../inspect/theme.js'
import type { ChoiceSeen } from './choices.js'
import { meaningOf } from './explain.js'
import type { ExplorationData } from './exploration.js'
import { pictureText } from './picture-text.js'
import { schedulesText } from './schedules-text.js'

/** The whole of it for a terminal. */
export function explorationText(data: ExplorationData, paint: Paint): string {
  return [
    headline(data, paint),
    ...divergenceLines(data, paint),
    ...violationLines(data, paint),
    ...replayedLines(data, paint),
    ...choiceLines(data),
    ...coverageLines(data),
  ].join('\n')
}

/** What was found, in one line. */
export function headline(data: ExplorationData, paint: Paint): string {
  const played = `${schedulesText(data.schedules)} of '${plain(data.definition)}'`
  if (!data.independent && data.distinct === 0 && data.violations.length === 0)
    return paint(`✗ Nothing could be compared: ${played}, and each of them left the record`, 'bad')
  if (!data.independent) {
    const kind = data.violations[0]?.invariant ?? data.divergence?.kind ?? 'output'
    return paint(`✗ ${meaningOf(kind)}: found in ${played}`, 'bad')
  }
  // One order alone shows nothing about others.
  if (data.replayed !== null)
    return `The schedule ${data.replayed.schedule} of '${plain(data.definition)}' was played: ${plain(data.replayed.status)}`
  const every = data.exhaustive ? 'every order' : 'every order that was played'
  const fixed = data.choices.length > 0 ? ', for the same choices' : ''
  return paint(`✓ The same outcome in ${every}${fixed}: ${played}, ${data.distinct} distinct`, 'good')
}

function divergenceLines({ divergence, seed }: ExplorationData, paint: Paint): string[] {
  if (divergence === null) return []
  const [a, b] = divergence.pictures
  return [
    '',
    plain(divergence.how),
    '',
    `Schedule ${divergence.a}:`,
    pictureText(a, paint),
    '',
    `Schedule ${divergence.b}:`,
    pictureText(b, paint),
    '',
    'What differs:',
    ...divergence.differences.flatMap(({ where, a: one, b: other }) => [
      `  ${plain(where)}`,
      `    ${divergence.a}: ${plain(one)}`,
      `    ${divergence.b}: ${paint(plain(other), 'bad')}`,
    ]),
    '',
    againLine(divergence.b, seed),
  ]
}

/** What chance brings to a run comes from the seed: the schedule alone is not enough. */
const againLine = (schedule: string, seed: string): string =>
  `Play ${schedule} again: --replay ${schedule} --seed ${plain(seed)}, or the options { replay: '${schedule}', seed: '${plain(seed)}' }, and the others as here.`

function violationLines({ violations, seed }: ExplorationData, paint: Paint): string[] {
  return violations.flatMap(({ invariant, schedule, explain, picture }) => [
    '',
    paint(`${meaningOf(invariant)} (${invariant}), in the schedule ${schedule}:`, 'bad'),
    plain(explain),
    ...(invariant === 'not-repeatable' ? [] : [pictureText(picture, paint)]),
    againLine(schedule, seed),
  ])
}

function replayedLines({ replayed, violations }: ExplorationData, paint: Paint): string[] {
  if (replayed === null || violations.length > 0) return []
  const { schedule, came, picture } = replayed
  return ['', `Schedule ${schedule}:`, pictureText(picture, paint), '', `It came to ${plain(JSON.stringify(came))}`]
}

function choiceLines({ choices, allowed }: ExplorationData): string[] {
  const told = choices.filter(({ agent, kind }) => !((kind === 'join' || kind === 'gate') && allowed.includes(agent)))
  if (told.length === 0) return []
  return ['', 'Orders decide, and may:', ...told.map((choice) => `  ${choiceLine(choice)}`)]
}

function choiceLine({ at, agent, kind, decidedBy, never }: ChoiceSeen): string {
  const by = decidedBy.map(({ who, schedules }) => `${plain(who === '' ? 'nobody' : who)} (${schedules})`).join(', ')
  return `the ${kind} of ${plain(agent)} at ${at}, by ${by}${never.length > 0 ? `; never by ${plain(never.join(', '))}` : ''}`
}

function coverageLines({ notExplored, notes, bounds, redundant }: ExplorationData): string[] {
  return [
    '',
    ...bounds.map(
      ({ depth, walks, lanes, steps, chance }) =>
        `PCT of depth ${depth}, ${walks} walks: each finds a bug of that depth with a chance of at least 1 / (${lanes} × ${steps}${depth > 2 ? `^${depth - 1}` : ''}) = ${chance.toExponential(1)}`,
    ),
    ...(redundant > 0
      ? [`Given up: ${schedulesText(redundant)} that ${redundant === 1 ? 'differs' : 'differ'} from others only by what commutes.`]
      : []),
    notExplored.length === 0 ? 'Not explored: nothing.' : 'Not explored:',
    ...notExplored.map((line) => `  - ${plain(line)}`),
    ...notes.map((line) => `Note: ${plain(line)}`),
  ]
}
