import type { GroupRow } from './fold-lanes.js'
import { laneProfile, type ProfileBin } from './lane-profile.js'
import { type Inside, tag } from './markup.js'
import { hatched } from './svg.js'
import { colour } from './theme.js'
import { type TimeLine, xOf } from './time-scale.js'

/** What is stacked on what, from the bottom. */
const layers: readonly { readonly what: keyof ProfileBin; readonly fill: string }[] = [
  { what: 'failed', fill: colour('bad') },
  { what: 'works', fill: colour('turn') },
  { what: 'undo', fill: hatched('undo') },
  { what: 'person', fill: hatched('person') },
  { what: 'waits', fill: hatched('wait') },
]
/** The width of one part of the area, in pixels. */
const partPx = 2

/** Many lanes as an area: how many of them worked, waited or had failed at a time. The critical path, if it is in there, lies at the bottom. */
export function groupMarks({ lanes, below }: GroupRow, line: TimeLine, top: number, height: number): Inside {
  const all = [...lanes, ...below]
  const { left, right } = line
  const bins = laneProfile(all, line.scale, Math.max(1, Math.round((right - left) / partPx)))
  const sums = bins.map((bin) => {
    let sum = 0
    return layers.map(({ what }) => (sum += bin[what]))
  })
  const most = Math.max(1, ...sums.map((stacked) => stacked.at(-1) ?? 0))
  const base = top + height
  const step = (right - left) / bins.length
  const area = (layer: number): string => {
    let way = `M${left.toFixed(1)} ${base}`
    for (const [index, stacked] of sums.entries()) {
      const y = base - ((stacked[layer] ?? 0) / most) * height
      way += `L${(left + index * step).toFixed(1)} ${y.toFixed(1)}H${(left + (index + 1) * step).toFixed(1)}`
    }
    return `${way}L${right.toFixed(1)} ${base}Z`
  }
  const critical = all.flatMap(({ bars }) => bars.filter((bar) => bar.critical))
  return [
    [...layers.keys()]
      .filter((layer) => bins.some((bin) => bin[layers[layer]?.what ?? 'works'] > 0))
      .reverse()
      .map((layer) => tag('path', { d: area(layer), fill: layers[layer]?.fill })),
    tag('line', { x1: left, x2: right, y1: base, y2: base, stroke: colour('line') }),
    critical.map((bar) => {
      const x = xOf(line, bar.from)
      return tag('rect', { x, y: base - 3, width: Math.max(2, xOf(line, bar.to) - x), height: 3, fill: colour('path') })
    }),
  ]
}
