import { shortened } from './escape.js'
import { htmlFile } from './html.js'
import { type Inside, tag } from './markup.js'
import { svgElement } from './svg.js'
import { timeText } from './time-text.js'
import type { Bar, Timeline } from './timeline.js'
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
  const bars = lanes.flatMap((lane) => lane.bars.map((bar) => ({ bar, branch: lane.id })))
  const of = (...kinds: readonly Bar['kind'][]): typeof bars => bars.filter(({ bar }) => kinds.includes(bar.kind))
  return htmlFile(
    headline(timeline),
    tag('h1', {}, headline(timeline)),
    tag('p', {}, `run ${runId}, version ${version}, started ${timeText(from.at)}: ${countsLine(timeline)}`),
    tag('div', { class: 'picture' }, svgElement(timelineDrawing(timeline, { width: 1140, bare: true }))),
    section('What it waited for', tag('p', {}, pathWords(timeline, 40))),
    error === undefined ? null : section('Why it failed', tag('pre', {}, json(error))),
    table('What failed on the way', of('failed', 'rejected', 'undo-failed')),
    table('What people were asked', of('person')),
    table('What was undone', of('undo')),
    output === undefined ? null : section('What came out', tag('pre', {}, json(output))),
  )
}

const section = (title: string, inside: Inside): Inside => [tag('h2', {}, title), inside]

function table(title: string, bars: readonly { readonly bar: Bar; readonly branch: string }[]): Inside {
  if (bars.length === 0) return null
  const head = ['branch', 'who', 'turn', 'what', 'for'].map((name) => tag('th', {}, name))
  const lines = bars.slice(0, linesMax).map(({ bar, branch }) => {
    const turn = bar.turn === null ? '' : `${bar.turn}${(bar.attempt ?? 1) > 1 ? `, attempt ${bar.attempt}` : ''}`
    const cells = [branch, bar.agent, turn, shortened(bar.text === '' ? kindWords[bar.kind] : bar.text, 600)]
    const took = tag('td', { class: 'short' }, durationText(bar.to.at - bar.from.at))
    return tag('tr', {}, ...cells.map((cell) => tag('td', {}, cell)), took)
  })
  const more = bars.length > linesMax ? tag('p', {}, `and ${(bars.length - linesMax).toLocaleString('en')} more`) : null
  return section(`${title} (${bars.length.toLocaleString('en')})`, [tag('table', {}, tag('tr', {}, head), lines), more])
}

/** Indented, with its line breaks kept: the only ones that are. */
function json(value: unknown): Inside {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '')
  return shortened(text, valueMax)
    .split('\n')
    .flatMap((line, index): Inside[] => [index === 0 ? null : tag('br'), line])
}
