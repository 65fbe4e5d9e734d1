import { plain, shortened } from './escape.js'
import { foldLanes, type GroupRow, isCritical, type Row } from './fold-lanes.js'
import { laneProfile } from './lane-profile.js'
import { brokenText, cells, fitted, inLines, padded } from './text-size.js'
import { type Colour, type Paint, painted, unpainted } from './theme.js'
import { type TimeScale, timeScale } from './time-scale.js'
import type { Bar, BarKind, Timeline } from './timeline.js'
import { countsLine, headline, isBad, kindWords, laneEnd, pathWords, reasonsOf, rowEnd, rowNames } from './timeline-words.js'

export interface TextOptions {
  /** How many cells a line may take. */
  readonly width?: number
  /** Off, there is not one escape sequence in the text. */
  readonly colour?: boolean
}

const glyphs: Readonly<Record<BarKind, string>> = {
  turn: '▄',
  failed: '✗',
  rejected: '!',
  aborted: '~',
  sleep: 'z',
  backoff: '·',
  barrier: '░',
  rendezvous: '░',
  person: '?',
  undo: '◂',
  'undo-failed': '✗',
}
/** A turn that the run waited for stands out from the others without any colour. */
const criticalTurn = '█'
const halves: Readonly<Record<string, string>> = { '█': '▐', '▄': '▗' }

const colours: Readonly<Record<BarKind, Colour>> = {
  turn: 'turn',
  failed: 'bad',
  rejected: 'retry',
  aborted: 'dim',
  sleep: 'turn',
  backoff: 'retry',
  barrier: 'wait',
  rendezvous: 'wait',
  person: 'person',
  undo: 'undo',
  'undo-failed': 'bad',
}

const widthMin = 40
/** How many reasons there are below the picture, and how much of each; the rest is counted. */
const reasonsMax = 12
const reasonMax = 300

/** A timeline as lines of text: a lane per branch, time from left to right. */
export function timelineText(timeline: Timeline, { width = 100, colour = false }: TextOptions = {}): string {
  const paint = colour ? painted : unpainted
  const room = Math.max(widthMin, Math.floor(width))
  const rows = foldLanes(timeline)
  const scale = timeScale(timeline)
  const names = rowNames(rows, timeline.kind).map((name, index) => `${'  '.repeat(Math.min(rows[index]?.depth ?? 0, 6))}${plain(name)}`)
  const ends = rows.map((row) => plain(rowEnd(row)))
  const nameWidth = Math.min(Math.max(8, ...names.map(cells)), Math.floor(room * 0.34))
  const endWidth = Math.min(Math.max(0, ...ends.map(cells)), Math.floor(room * 0.24))
  const barWidth = room - nameWidth - endWidth - 4
  const lines = rows.map((row, index) => {
    const name = padded(names[index] ?? '', nameWidth)
    const end = fitted(ends[index] ?? '', endWidth, cells)
    return `${isCritical(row) ? paint(name, 'path') : name}  ${barsLine(row, scale, barWidth, paint)}  ${paint(end, endColour(row))}`.trimEnd()
  })
  const left = ' '.repeat(nameWidth + 2)
  return [
    paint(fitted(plain(headline(timeline)), room, cells), 'path'),
    paint(fitted(plain(`run ${timeline.runId}, ${countsLine(timeline)}`), room, cells), 'dim'),
    '',
    left + paint(axisLine(scale, barWidth), 'dim'),
    ...lines,
    ...marksLine(timeline, scale, barWidth).map((line) => left + paint(line, 'dim')),
    '',
    ...inLines(legend(timeline, rows), room, cells, '   ').map((line) => paint(line, 'dim')),
    ...inLines(pathParts(timeline), room, cells),
    ...reasons(timeline, rows, names, room).map((line) => paint(line, 'bad')),
    '',
  ].join('\n')
}

function endColour(row: Row): Colour {
  if (isBad(row)) return 'bad'
  return row.kind === 'lane' && laneEnd(row.lane) === 'arrived' ? 'good' : 'dim'
}

interface Cell {
  readonly glyph: string
  readonly colours: readonly Colour[]
}

const blank: Cell = { glyph: ' ', colours: [] }

function barsLine(row: Row, scale: TimeScale, width: number, paint: Paint): string {
  const line = row.kind === 'lane' ? laneCells(row.lane.bars, scale, width) : groupCells(row, scale, width)
  return runsOf(line)
    .map(({ glyph, colours: found }) => paint(glyph, ...found))
    .join('')
}

/** The critical path, in parts that may stand on lines of their own; nothing while there is none. */
function pathParts(timeline: Timeline): string[] {
  const words = pathWords(timeline)
  if (words === '') return []
  return plain(`critical path: ${words}`)
    .split(' → ')
    .map((part, index) => (index === 0 ? part : `→ ${part}`))
}

/** Neighbours of one colour in one piece, so that there are few escape sequences. */
function runsOf(line: readonly Cell[]): Cell[] {
  const runs: Cell[] = []
  for (const cell of line) {
    const last = runs.at(-1)
    if (last !== undefined && last.colours.join() === cell.colours.join())
      runs[runs.length - 1] = { ...last, glyph: last.glyph + cell.glyph }
    else runs.push(cell)
  }
  return runs
}

/** What is drawn over what: waiting below, work above it, what went wrong on top. */
const rank = ({ kind, turn }: Bar): number => {
  if (kind === 'sleep') return 3
  if (kind === 'failed' || kind === 'undo-failed') return 4
  return turn !== null || kind === 'undo' ? 2 : 1
}

function laneCells(bars: readonly Bar[], scale: TimeScale, width: number): Cell[] {
  const line = Array.from({ length: width }, () => blank)
  for (const bar of [...bars].sort((a, b) => rank(a) - rank(b))) {
    const from = Math.min(width - 1, Math.floor(scale.x(bar.from) * width))
    const to = Math.max(from + 1, Math.round(scale.x(bar.to) * width))
    const glyph = bar.kind === 'turn' && bar.critical ? criticalTurn : glyphs[bar.kind]
    const found = bar.critical ? ([colours[bar.kind], 'path'] as const) : [colours[bar.kind]]
    for (let at = from; at < Math.min(width, to); at++) line[at] = { glyph, colours: found }
    // A turn right behind another begins with half a cell, so that two of them are not taken for one.
    const half = halves[glyph]
    if (half !== undefined && line[from - 1]?.glyph === glyph && to - from > 1) line[from] = { glyph: half, colours: found }
  }
  return line
}

const heights = '▁▂▃▄▅▆▇█'

/** A group as the height of how many of it work at a time. */
function groupCells({ lanes, below }: GroupRow, scale: TimeScale, width: number): Cell[] {
  const all = [...lanes, ...below]
  return laneProfile(all, scale, width).map(({ works, waits, person, failed, undo }): Cell => {
    if (failed > works) return { glyph: '✗', colours: ['bad'] }
    if (undo > works) return { glyph: '◂', colours: ['undo'] }
    if (works > 0)
      return { glyph: heights[Math.min(7, Math.floor((works / all.length) * 8))] ?? '█', colours: [failed > 0 ? 'bad' : 'turn'] }
    if (person > 0) return { glyph: '?', colours: ['person'] }
    return waits > 0 ? { glyph: '░', colours: ['wait'] } : blank
  })
}

function axisLine(scale: TimeScale, width: number): string {
  const line = Array.from({ length: width }, () => ' ')
  const put = (x: number, text: string): void => {
    const at = Math.min(Math.round(x * width), width - text.length)
    if (at < 0 || line.slice(Math.max(0, at - 1), at + text.length + 1).some((cell) => cell !== ' ')) return
    for (const [index, character] of text.split('').entries()) line[at + index] = character
  }
  put(0, '0')
  for (const { from, text } of scale.breaks) put(from, `// ${text}`)
  for (const { x, text } of scale.ticks(10 / width)) put(x, `|${text}`)
  return line.join('').trimEnd()
}

/** Pauses and take-overs, below the lanes they cut through. */
function marksLine({ pauses, takeovers }: Timeline, scale: TimeScale, width: number): string[] {
  if (pauses.length === 0 && takeovers.length === 0) return []
  const line = Array.from({ length: width }, () => ' ')
  const place = (x: number): number => Math.min(width - 1, Math.floor(x * width))
  for (const { from, to } of pauses) for (let at = place(scale.x(from)); at <= place(scale.x(to)); at++) line[at] = '‖'
  for (const moment of takeovers) line[place(scale.x(moment))] = '^'
  return [line.join('').trimEnd()]
}

function legend({ lanes, pauses, takeovers }: Timeline, rows: readonly Row[]): string[] {
  const kinds = new Set(
    rows.flatMap((row) =>
      row.kind === 'lane' ? row.lane.bars.filter(({ kind, critical }) => kind !== 'turn' || !critical).map(({ kind }) => kind) : [],
    ),
  )
  const critical = lanes.some(({ bars }) => bars.some((bar) => bar.kind === 'turn' && bar.critical))
  const words = new Map<string, string>()
  if (critical) words.set(criticalTurn, 'works, and the run waits for it')
  for (const [kind, text] of Object.entries(kindWords)) {
    const glyph = glyphs[kind as BarKind]
    if (kinds.has(kind as BarKind) && !words.has(glyph)) words.set(glyph, text)
  }
  if (rows.some(({ kind }) => kind === 'group')) words.set('▁▄▇', 'how many of them work')
  if (pauses.length > 0) words.set('‖', 'paused')
  if (takeovers.length > 0) words.set('^', 'taken over by another process')
  return [...words].map(([glyph, text]) => `${glyph} ${text}`)
}

/** What went wrong for good, line by line. */
function reasons({ lanes }: Timeline, rows: readonly Row[], names: readonly string[], width: number): string[] {
  const found = rows.flatMap((row, index) =>
    row.kind === 'lane' ? reasonsOf(row.lane).map((why) => `✗ ${names[index]?.trim()}: ${plain(shortened(why, reasonMax))}`) : [],
  )
  const shown = found.slice(0, reasonsMax)
  const more = lanes.flatMap(reasonsOf).length - shown.length
  return [
    ...shown.flatMap((text) => brokenText(text, width - 2, cells).map((line, index) => `${index === 0 ? '' : '  '}${line}`.trimEnd())),
    ...(more > 0 ? [`and ${more.toLocaleString('en')} more`] : []),
  ]
}
