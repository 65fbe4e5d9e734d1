import { shortened } from './escape.js'
import { htmlFile } from './html.js'
import { type Inside, tag } from './markup.js'
import { svgElement } from './svg.js'
import { timeText } from './time-text.js'
import type { Bar, Lane, Timeline } from './timeline.js'
import { timelineDrawing } from './timeline-svg.js'
import { countsLine, headline, kindWords, pathWords } from './timeline-words.js'
import { durationText } from './duration-text.js'

/** How many lines a table has; the rest is counted. */
const linesMax = 200
/** How much of a value is shown. */
const valueMax = 4_000

/** A run as one page: its timeline, and in words what went wrong, what was asked and what came out. */
export function timelineHtml(timeline: Timeline): string {
  const { runId, version, from, lanes, output, error } = timeline
  const of = (...kinds: readonly Bar['kind'][]): Line[] => lanes.flatMap((lane) => linesOf(lane, kinds))
  const path = pathWords(timeline, 40)
  return htmlFile(
    headline(timeline),
    tag('h1', {}, headline(timeline)),
    tag('p', {}, `run ${runId}, version ${version}, started ${timeText(from.at)}: ${countsLine(timeline)}`),
    tag('div', { class: 'picture' }, svgElement(timelineDrawing(timeline, { width: 1140, bare: true }))),
    path === '' ? null : section('What it waited for', tag('p', {}, path)),
    error === undefined ? null : section('Why it failed', tag('pre', {}, json(error))),
    table(
      'What failed on the way',
      lanes.flatMap((lane) => [...linesOf(lane, failures), ...otherwiseFailed(lane)]),
    ),
    table('What people were asked', of('person')),
    table('What was undone', of('undo')),
    output === undefined ? null : section('What came out', tag('pre', {}, json(output))),
  )
}

const section = (title: string, inside: Inside): Inside => [tag('h2', {}, title), inside]

/** A line of a table: a bar, or a branch. */
interface Line {
  readonly branch: string
  readonly who: string
  /** Which turn, and which attempt if it is not the first. */
  readonly which: string
  readonly what: string
  readonly tookMs: number
}

function linesOf({ id, bars }: Lane, kinds: readonly Bar['kind'][]): Line[] {
  return bars
    .filter(({ kind }) => kinds.includes(kind))
    .map(({ kind, agent, turn, attempt, text, from, to }) => ({
      branch: id,
      who: agent,
      which: [...(turn === null ? [] : [turn]), ...((attempt ?? 1) > 1 ? [`attempt ${attempt}`] : [])].join(', '),
      what: text === '' ? kindWords[kind] : text,
      tookMs: to.at - from.at,
    }))
}

const failures: readonly Bar['kind'][] = ['failed', 'rejected', 'undo-failed']

/** A branch can fail though no turn of it did: its join was not met, or nobody answered. */
function otherwiseFailed({ id, agents, bars, outcome, cause, from, to }: Lane): Line[] {
  const last = bars.findLast(({ turn }) => turn !== null)
  if (outcome !== 'failed' || cause === null || (last !== undefined && failures.includes(last.kind))) return []
  return [{ branch: id, who: agents.at(-1) ?? '', which: '', what: cause, tookMs: to.at - from.at }]
}

function table(title: string, lines: readonly Line[]): Inside {
  if (lines.length === 0) return null
  const named = lines.some(({ which }) => which !== '')
  const head = ['branch', 'who', ...(named ? ['turn'] : []), 'what', 'for'].map((name) => tag('th', {}, name))
  const rows = lines.slice(0, linesMax).map(({ branch, who, which, what, tookMs }) => {
    const cells = [branch, who].map((name) => tag('td', { class: 'name' }, name))
    if (named) cells.push(tag('td', {}, which))
    return tag('tr', {}, cells, tag('td', {}, shortened(what, 600)), tag('td', { class: 'short' }, durationText(tookMs)))
  })
  const more = lines.length > linesMax ? tag('p', {}, `and ${(lines.length - linesMax).toLocaleString('en')} more`) : null
  return section(`${title} (${lines.length.toLocaleString('en')})`, [tag('table', {}, tag('tr', {}, head), rows), more])
}

/** Indented, with its line breaks kept: the only ones that are. */
function json(value: unknown): Inside {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
  return shortened(text, valueMax)
    .split('\n')
    .flatMap((line, index): Inside[] => [index === 0 ? null : tag('br'), line])
}
