import { type Attributes, type Inside, tag } from './markup.js'
import { hatched, label } from './svg.js'
import { textWidth } from './text-size.js'
import { type Colour, colour } from './theme.js'
import { type TimeLine, xOf } from './time-scale.js'
import type { Bar, BarKind } from './timeline.js'
import { barWords } from './timeline-words.js'

export const barHeight = 14

/** How a kind of bar is drawn: full, hatched or open; waiting for others is thinner. What stands on it: the agent, or a sign. */
interface Look {
  readonly look: Attributes
  readonly thin?: boolean
  readonly says: 'agent' | '✗' | '?' | '↶' | ''
  readonly ink: Colour
}

export const looks: Readonly<Record<BarKind, Look>> = {
  turn: { look: { fill: colour('turn') }, says: 'agent', ink: 'ground' },
  failed: { look: { fill: hatched('bad'), stroke: colour('bad') }, says: '✗', ink: 'bad' },
  rejected: { look: { fill: colour('retry'), 'fill-opacity': 0.55, stroke: colour('retry') }, says: 'agent', ink: 'dim' },
  aborted: { look: { fill: hatched('dim'), stroke: colour('dim'), 'stroke-dasharray': '3 2' }, says: 'agent', ink: 'dim' },
  sleep: {
    look: { fill: colour('ground'), 'fill-opacity': 0.75, stroke: colour('turn'), 'stroke-dasharray': '2 3' },
    thin: true,
    says: '',
    ink: 'dim',
  },
  backoff: { look: { fill: 'none', stroke: colour('retry'), 'stroke-dasharray': '2 3' }, thin: true, says: '', ink: 'retry' },
  barrier: { look: { fill: hatched('wait') }, thin: true, says: '', ink: 'dim' },
  rendezvous: { look: { fill: hatched('wait'), stroke: colour('wait') }, thin: true, says: '', ink: 'dim' },
  person: { look: { fill: hatched('person'), stroke: colour('person') }, says: '?', ink: 'person' },
  undo: { look: { fill: hatched('undo'), stroke: colour('undo') }, says: '↶', ink: 'undo' },
  'undo-failed': { look: { fill: hatched('bad'), stroke: colour('bad'), 'stroke-width': 2 }, says: '✗', ink: 'bad' },
}

/** The bars of one lane. */
export function barMarks(bars: readonly Bar[], line: TimeLine, top: number): Inside {
  return thinned(bars, line).map((bar) => barMark(bar, line, top))
}

/** A lane of thousands of turns has more bars than pixels: of those that fall on the same one, the first of its kind stands for them. */
function thinned(bars: readonly Bar[], line: TimeLine): readonly Bar[] {
  if (bars.length < 200) return bars
  const taken = new Set<string>()
  return bars.filter((bar) => {
    const place = `${bar.kind} ${Math.round(xOf(line, bar.from))} ${Math.round(xOf(line, bar.to))}`
    return taken.size < taken.add(place).size
  })
}

function barMark(bar: Bar, line: TimeLine, top: number): Inside {
  const { look, thin = false, says } = looks[bar.kind]
  const x = xOf(line, bar.from)
  const width = Math.max(2.5, xOf(line, bar.to) - x)
  const [y, height] = thin ? [top + 3, barHeight - 6] : [top, barHeight]
  const edge = bar.critical ? { stroke: colour('path'), 'stroke-width': 1.6 } : {}
  const text = says === 'agent' ? bar.agent : says
  return tag(
    'g',
    {},
    tag('title', {}, barWords(bar)),
    tag('rect', { x, y, width, height, rx: 3, ...look, ...edge }),
    text !== '' && width > textWidth(text, 10) + 8 ? barLabel(bar.kind, text, { x, width, top }) : null,
  )
}

/** On a full bar as it stands, on any other on a spot of its own. */
function barLabel(kind: BarKind, text: string, { x, width, top }: { x: number; width: number; top: number }): Inside {
  const fill = looks[kind].ink
  if (kind === 'turn') return label(x + 6, top + 10.5, text, { size: 10, fill })
  const room = textWidth(text, 10) + 6
  const at = x + width / 2
  return [
    tag('rect', { x: at - room / 2, y: top + 1.5, width: room, height: barHeight - 3, rx: 2, fill: colour('ground') }),
    label(at, top + 10.5, text, { size: 10, anchor: 'middle', fill }),
  ]
}
