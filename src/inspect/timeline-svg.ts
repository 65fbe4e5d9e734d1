import { barHeight, barMarks, looks } from './bar-svg.js'
import { foldLanes, isCritical, type Row } from './fold-lanes.js'
import { groupMarks } from './group-svg.js'
import { type Attributes, type Inside, type Markup, tag } from './markup.js'
import { type Drawing, hatched, label, svgFile } from './svg.js'
import { textWidth } from './text-size.js'
import { colour } from './theme.js'
import { type TimeLine, timeScale, xOf } from './time-scale.js'
import type { BarKind, Timeline } from './timeline.js'
import { countsLine, endMarks, headline, isBad, kindWords, laneEnd, type LaneEnd, pathWords, rowEnd, rowNames } from './timeline-words.js'

/** A timeline as an SVG file: a lane per branch, time from left to right. */
export function timelineSvg(timeline: Timeline, options: SvgOptions = {}): string {
  return svgFile(timelineDrawing(timeline, options))
}

export interface SvgOptions {
  /** In pixels. */
  readonly width?: number
  /** Without the lines that say which run it is, for a page that does. */
  readonly bare?: boolean
}

const margin = 16
const widthMin = 480
const laneHeight = 26
const groupHeight = 40
const wordsHeight = 52
const axisHeight = 32

/** The same, to stand in a page. */
export function timelineDrawing(timeline: Timeline, { width = 960, bare = false }: SvgOptions = {}): Drawing {
  const plan = planOf(timeline, Math.max(widthMin, width), bare ? axisHeight : axisHeight + wordsHeight)
  const { rows, bottom } = plan
  const legend = legendOf(timeline, rows, plan.width, bottom + 26)
  return {
    width: plan.width,
    height: legend.bottom + margin,
    title: headline(timeline),
    description: `${countsLine(timeline)}. Critical path: ${pathWords(timeline)}`,
    body: [
      bare ? null : head(timeline, plan),
      axis(plan),
      rows.map((_, index) => rowGround(plan, index)),
      cuts(timeline, plan),
      forks(plan),
      rows.map((row, index) => rowMarks(row, plan, index)),
      path(timeline, plan),
      legend.marks,
    ],
  }
}

/** Where everything stands. */
interface Plan extends TimeLine {
  readonly width: number
  readonly rows: readonly Row[]
  readonly names: readonly string[]
  /** The upper edge of each row. */
  readonly tops: readonly number[]
  readonly top: number
  readonly bottom: number
  /** The row in which each lane is drawn. */
  readonly rowOf: ReadonlyMap<string, number>
}

function planOf(timeline: Timeline, width: number, top: number): Plan {
  const rows = foldLanes(timeline)
  const names = rowNames(rows, timeline.kind)
  const named = Math.max(...names.map((name, index) => textWidth(name, 12, true) + indent(rows[index])), 60)
  const ended = Math.max(...rows.map((row) => textWidth(rowEnd(row), 11)), 40)
  const tops: number[] = []
  let y = top
  const rowOf = new Map<string, number>()
  for (const [index, row] of rows.entries()) {
    tops.push(y)
    y += row.kind === 'lane' ? laneHeight : groupHeight
    for (const { id } of row.kind === 'lane' ? [row.lane] : [...row.lanes, ...row.below]) rowOf.set(id, index)
  }
  const left = margin + Math.min(named, width * 0.3) + 14
  const right = width - margin - Math.min(ended, width * 0.2) - 12
  return { width, rows, names, scale: timeScale(timeline), left, right, tops, top, bottom: y, rowOf }
}

const indent = (row: Row | undefined): number => Math.min(row?.depth ?? 0, 6) * 12
const middleOf = (plan: Plan, row: number): number =>
  (plan.tops[row] ?? 0) + (plan.rows[row]?.kind === 'group' ? groupHeight : laneHeight) / 2

function head(timeline: Timeline, { width }: Plan): Inside {
  const fill = timeline.status === 'failed' ? 'bad' : timeline.status === 'succeeded' ? 'good' : 'dim'
  return [
    tag('circle', { cx: margin + 5, cy: 25, r: 5, fill: colour(fill) }),
    label(margin + 18, 30, headline(timeline), { size: 15, weight: 600, max: width - 2 * margin - 18 }),
    label(margin, 50, `run ${timeline.runId}, ${countsLine(timeline)}`, { fill: 'dim', size: 11, max: width - 2 * margin }),
  ]
}

function axis(plan: Plan): Inside {
  const { scale, left, right, top, bottom } = plan
  return scale.ticks(64 / (right - left)).map(({ x, text }) => {
    const at = left + x * (right - left)
    return [
      tag('line', { x1: at, x2: at, y1: top - 6, y2: bottom, stroke: colour('line') }),
      label(at, top - 11, text, { size: 10, fill: 'dim', anchor: x === 0 ? 'start' : 'middle' }),
    ]
  })
}

function rowGround(plan: Plan, index: number): Inside {
  const row = plan.rows[index]
  const top = plan.tops[index] ?? 0
  if (row === undefined) return null
  const height = row.kind === 'group' ? groupHeight : laneHeight
  const base = top + height / 2 + 4
  const x = margin + indent(row)
  return [
    index % 2 === 0 ? tag('rect', { x: 0, y: top, width: plan.width, height, fill: colour('panel'), 'fill-opacity': 0.55 }) : null,
    label(x, base, plan.names[index] ?? '', { max: plan.left - 10 - x, ...(isCritical(row) && { weight: 600 as const }) }),
    label(plan.right + 12, base, rowEnd(row), {
      size: 11,
      fill: isBad(row) ? 'bad' : 'dim',
      max: plan.width - margin / 2 - plan.right - 12,
    }),
  ]
}

/** What goes through all lanes: time that was cut out, pauses, and processes that took over. */
function cuts({ pauses, takeovers }: Timeline, plan: Plan): Inside {
  const { scale, left, right, top, bottom } = plan
  const band = (from: number, to: number, attributes: Attributes): Markup =>
    tag('rect', { x: from, y: top - 6, width: Math.max(2, to - from), height: bottom - top + 6, ...attributes })
  return [
    scale.breaks.map(({ from, to, text }) => {
      const [x1, x2] = [left + from * (right - left), left + to * (right - left)]
      return [
        band(x1, x2, { fill: colour('ground'), 'fill-opacity': 0.7 }),
        tag('path', { d: zigzag((x1 + x2) / 2, top - 6, bottom), fill: 'none', stroke: colour('edge'), 'stroke-dasharray': '3 2' }),
        label((x1 + x2) / 2, top - 11, `// ${text}`, { size: 10, fill: 'dim', anchor: 'middle', italic: true }),
      ]
    }),
    pauses.map(({ from, to }) => band(xOf(plan, from), xOf(plan, to), { fill: hatched('dim'), 'fill-opacity': 0.35 })),
    takeovers.map((moment) => {
      const x = xOf(plan, moment)
      return tag('line', { x1: x, x2: x, y1: top - 6, y2: bottom, stroke: colour('retry'), 'stroke-dasharray': '2 3' })
    }),
    apart([
      ...pauses.map(({ from, to }) => ({ x: (xOf(plan, from) + xOf(plan, to)) / 2, text: 'paused' })),
      ...takeovers.map((moment) => ({ x: xOf(plan, moment), text: 'taken over' })),
    ]).map(({ x, text }) => label(x, bottom + 12, text, { size: 10, fill: 'dim', anchor: 'middle' })),
  ]
}

/** Of words on one line, those that do not run into the one before. */
function apart(words: readonly { readonly x: number; readonly text: string }[]): { readonly x: number; readonly text: string }[] {
  let free = 0
  return [...words]
    .sort((a, b) => a.x - b.x)
    .filter(({ x, text }) => {
      const half = textWidth(text, 10) / 2
      if (x - half < free) return false
      free = x + half + 6
      return true
    })
}

function zigzag(x: number, top: number, bottom: number): string {
  let way = `M${Math.round(x)} ${top}`
  for (let y = top + 6, side = 3; y < bottom; y += 6, side = -side) way += `L${Math.round(x) + side} ${y}`
  return way
}

/** From each fork down to the branches it opened. */
function forks(plan: Plan): Inside {
  return plan.rows.map((row, index) => {
    const lane = row.kind === 'lane' ? row.lane : row.lanes[0]
    const parent = plan.rowOf.get(lane?.parent ?? '')
    if (lane === undefined || parent === undefined || parent === index) return null
    const x = xOf(plan, lane.from)
    return tag('line', {
      x1: x,
      x2: x,
      y1: middleOf(plan, parent),
      y2: middleOf(plan, index),
      stroke: colour('edge'),
      'stroke-opacity': 0.55,
    })
  })
}

function rowMarks(row: Row, plan: Plan, index: number): Inside {
  if (row.kind === 'group') return groupMarks(row, plan, (plan.tops[index] ?? 0) + 4, groupHeight - 8)
  const y = middleOf(plan, index) - barHeight / 2
  const ground = tag('line', {
    x1: xOf(plan, row.lane.from),
    x2: xOf(plan, row.lane.to),
    y1: y + barHeight / 2,
    y2: y + barHeight / 2,
    stroke: colour('edge'),
    'stroke-opacity': 0.5,
  })
  return [ground, barMarks(row.lane.bars, plan, y)]
}

/** The critical path from lane to lane. */
function path({ lanes }: Timeline, plan: Plan): Inside {
  const bars = lanes.flatMap(({ id, bars: all }) =>
    all.filter(({ critical }) => critical).map((bar) => ({ bar, row: plan.rowOf.get(id) ?? 0 })),
  )
  bars.sort((a, b) => a.bar.from.seq - b.bar.from.seq)
  return bars.map(({ bar, row }, index) => {
    const before = bars[index - 1]
    if (before === undefined || before.row === row) return null
    const [x1, x2] = [xOf(plan, before.bar.to), xOf(plan, bar.from)]
    const [y1, y2] = [middleOf(plan, before.row), middleOf(plan, row)]
    const [leave, enter] = y2 > y1 ? [y1 + barHeight / 2, y2 - barHeight / 2] : [y1 - barHeight / 2, y2 + barHeight / 2]
    return tag('path', {
      d: `M${x1.toFixed(1)} ${leave}L${x2.toFixed(1)} ${enter}`,
      fill: 'none',
      stroke: colour('path'),
      'stroke-width': 1.6,
    })
  })
}

function legendOf(timeline: Timeline, rows: readonly Row[], width: number, top: number): { marks: Inside; bottom: number } {
  const kinds = new Set(timeline.lanes.flatMap(({ bars }) => bars.map(({ kind }) => kind)))
  const entries = (Object.keys(kindWords) as BarKind[])
    .filter((kind) => kinds.has(kind))
    .map((kind): { text: string; look: Attributes } => ({ text: kindWords[kind], look: looks[kind].look }))
  if (timeline.lanes.some(({ critical }) => critical))
    entries.push({ text: 'on the critical path', look: { fill: 'none', stroke: colour('path'), 'stroke-width': 1.6 } })
  const marks: Inside[] = []
  let [x, y] = [margin, top]
  for (const { text, look } of entries) {
    const wide = 22 + textWidth(text, 11) + 14
    if (x + wide > width - margin && x > margin) [x, y] = [margin, y + 20]
    marks.push(tag('rect', { x, y: y - 9, width: 16, height: 10, rx: 2, ...look }), label(x + 22, y, text, { size: 11, fill: 'dim' }))
    x += wide
  }
  const ends = new Set(rows.flatMap((row) => (row.kind === 'lane' ? [laneEnd(row.lane)] : (Object.keys(row.outcomes) as LaneEnd[]))))
  const words = [...ends].filter((end) => end !== 'running' && end !== 'waiting').map((end) => `${endMarks[end]} ${end}`)
  marks.push(label(margin, y + 20, words.join('   '), { size: 11, fill: 'dim' }))
  return { marks, bottom: y + 20 }
}
