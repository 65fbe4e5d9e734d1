import type { Markup } from '../../inspect/markup.js'
import { tag } from '../../inspect/markup.js'
import type { Drawing } from '../../inspect/svg.js'
import { label, svgFile } from '../../inspect/svg.js'
import { fitted, textWidth } from '../../inspect/text-size.js'
import type { Colour } from '../../inspect/theme.js'
import { colour, unpainted } from '../../inspect/theme.js'
import { plain } from '../../inspect/escape.js'
import type { Difference } from './difference.js'
import type { ExplorationData } from './exploration.js'
import { headline } from './exploration-text.js'
import type { Cell, Picture } from './picture.js'

const rowHeight = 24
const laneWidth = 176
const numberWidth = 40
const margin = 24
const gutter = 40

/** The picture of what was found, as a file of its own. */
export function explorationSvg(data: ExplorationData): string {
  return svgFile(explorationDrawing(data))
}

/** The schedules beside each other, lanes per branch, what must change places in red, and below what differs. */
export function explorationDrawing(data: ExplorationData): Drawing {
  const panels = panelsOf(data)
  const widths = panels.map(({ picture }) => numberWidth + picture.lanes.length * laneWidth)
  const width = Math.max(720, 2 * margin + widths.reduce((sum, one) => sum + one, 0) + gutter * Math.max(0, panels.length - 1))
  const body: Markup[] = [
    label(margin, 34, headline(data, unpainted), {
      size: 16,
      weight: 600,
      fill: data.independent ? 'good' : 'bad',
      max: width - 2 * margin,
    }),
  ]
  const told = data.divergence?.how ?? data.violations[0]?.explain ?? ''
  const wrapped = linesOf(plain(told), width - 2 * margin, 13)
  wrapped.forEach((line, index) => body.push(label(margin, 58 + index * 18, line, { size: 13, fill: 'dim' })))
  const top = 66 + wrapped.length * 18
  let x = margin
  let bottom = top
  panels.forEach(({ title, picture }, index) => {
    body.push(...panel(x, top, title, picture))
    bottom = Math.max(bottom, top + 56 + heightOf(picture))
    x += (widths[index] ?? 0) + gutter
  })
  const rest = restOf(data, bottom + 12, width)
  body.push(...rest.body)
  return { width, height: rest.bottom + margin, title: `Race check of ${data.definition}`, description: headline(data, unpainted), body }
}

function panelsOf(data: ExplorationData): { readonly title: string; readonly picture: Picture }[] {
  const { divergence } = data
  if (divergence !== null)
    return [
      { title: `schedule ${divergence.a}`, picture: divergence.pictures[0] },
      { title: `schedule ${divergence.b}`, picture: divergence.pictures[1] },
    ]
  const [violation] = data.violations
  const only = violation ?? data.replayed
  return only === null ? [] : [{ title: `schedule ${only.schedule}`, picture: only.picture }]
}

const heightOf = ({ rows }: Picture): number => rows.reduce((sum, { gap }) => sum + rowHeight * (gap > 0 ? 2 : 1), 0)

function panel(x: number, top: number, title: string, picture: Picture): Markup[] {
  const { lanes, rows } = picture
  const width = numberWidth + lanes.length * laneWidth
  const height = heightOf(picture)
  const body: Markup[] = [
    tag('rect', { x: x - 8, y: top, width: width + 16, height: height + 56, rx: 8, fill: colour('panel') }),
    label(x, top + 20, title, { size: 13, weight: 600, max: width }),
  ]
  lanes.forEach((lane, index) => {
    const at = x + numberWidth + index * laneWidth
    body.push(label(at, top + 42, lane, { size: 12, fill: 'dim', max: laneWidth - 12 }))
    body.push(tag('line', { x1: at - 6, y1: top + 50, x2: at - 6, y2: top + 52 + height, stroke: colour('line'), 'stroke-width': 1 }))
  })
  let y = top + 52
  for (const { step, gap, cells } of rows) {
    if (gap > 0) {
      body.push(label(x + numberWidth, y + 16, `… ${gap} steps …`, { size: 11, fill: 'dim', italic: true }))
      y += rowHeight
    }
    body.push(label(x + 26, y + 16, String(step), { size: 11, fill: 'dim', anchor: 'end' }))
    for (const cell of cells) body.push(...cellAt(x + numberWidth + cell.lane * laneWidth, y, cell))
    y += rowHeight
  }
  return body
}

const colourOf: Readonly<Record<Cell['kind'], Colour>> = {
  start: 'turn',
  end: 'good',
  activity: 'turn',
  timer: 'wait',
  person: 'person',
  steering: 'person',
  settle: 'wait',
  clock: 'wait',
  append: 'edge',
}

/** A start is a ring, an end a disc: shape says what colour says. */
function cellAt(x: number, y: number, { text, kind, red }: Cell): Markup[] {
  const paint = red ? 'bad' : colourOf[kind]
  const isOpen = kind === 'start' || kind === 'timer' || kind === 'clock'
  return [
    ...(red
      ? [
          tag('rect', {
            x: x - 2,
            y: y + 1,
            width: laneWidth - 8,
            height: rowHeight - 2,
            rx: 5,
            fill: colour('bad'),
            'fill-opacity': 0.16,
            stroke: colour('bad'),
            'stroke-width': 1.5,
          }),
        ]
      : []),
    tag('circle', {
      cx: x + 6,
      cy: y + 12,
      r: 4,
      fill: isOpen ? colour('panel') : colour(paint),
      stroke: colour(paint),
      'stroke-width': 2,
    }),
    label(x + 16, y + 16, plain(text), { size: 12, fill: red ? 'bad' : 'text', max: laneWidth - 28, ...(red && { weight: 600 }) }),
  ]
}

/** What differs, and what was not explored. */
function restOf(data: ExplorationData, top: number, width: number): { readonly body: Markup[]; readonly bottom: number } {
  const body: Markup[] = []
  let y = top + 12
  const line = (text: string, indent: number, fill: Colour, weight: 400 | 600 = 400): void => {
    for (const part of linesOf(plain(text), width - 2 * margin - indent, 12)) {
      body.push(label(margin + indent, y, part, { size: 12, fill, weight }))
      y += 17
    }
  }
  const { divergence } = data
  if (divergence !== null) {
    line('What differs', 0, 'text', 600)
    for (const { where, a, b } of divergence.differences satisfies readonly Difference[]) {
      line(where, 8, 'dim')
      line(`${divergence.a}: ${a}`, 20, 'text')
      line(`${divergence.b}: ${b}`, 20, 'bad')
    }
    y += 8
  }
  line(data.notExplored.length === 0 ? 'Not explored: nothing' : 'Not explored', 0, 'text', 600)
  for (const what of data.notExplored) line(what, 8, 'dim')
  return { body, bottom: y }
}

function linesOf(text: string, max: number, size: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (textWidth(longer, size) <= max) line = longer
    else {
      if (line !== '') lines.push(line)
      line = fitted(word, max, (part) => textWidth(part, size))
    }
  }
  return [...lines, ...(line === '' ? [] : [line])]
}
