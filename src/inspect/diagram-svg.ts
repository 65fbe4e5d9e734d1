import type { Definition } from '../define/definition.js'
import { type Diagram, type DiagramEdge, type DiagramNode, diagramOf } from './diagram.js'
import { type Layout, layeredLayout, type Placed, type Route } from './layered-layout.js'
import { type Attributes, type Inside, tag } from './markup.js'
import { type Drawing, label, svgFile } from './svg.js'
import { brokenText, textWidth } from './text-size.js'
import { colour } from './theme.js'

/** A topology or a graph as an SVG file. */
export function diagramSvg(definition: Definition): string {
  return svgFile(diagramDrawing(diagramOf(definition)))
}

const margin = 20
const headHeight = 58
const noteMax = 190
const noteHeight = 14
const hintsMax = 4

/** The same, to stand in a page. */
export function diagramDrawing(diagram: Diagram): Drawing {
  const layout = layeredLayout(diagram.nodes.map(boxOf), diagram.edges, ['End'])
  const legend = legendOf(diagram)
  const width = Math.max(layout.width + 2 * margin, 420, ...legend.map(({ text }) => textWidth(text, 11) + 70))
  const hints = diagram.hints
    .slice(0, hintsMax)
    .flatMap((hint) => brokenText(`hint: ${hint}`, width - 2 * margin, (text) => textWidth(text, 11)))
  const bottom = headHeight + layout.height + 34
  const words = `${diagram.kind}, version ${diagram.version}`
  return {
    width,
    height: bottom + legend.length * 20 + hints.length * 16 + (hints.length > 0 ? 8 : 0) + margin - 12,
    title: diagram.name,
    description: `${words}: ${diagram.nodes.length} nodes, ${diagram.edges.length} edges`,
    body: [
      label(margin, 28, diagram.name, { size: 15, weight: 600, max: width - 2 * margin }),
      label(margin, 46, words, { size: 11, fill: 'dim', max: width - 2 * margin }),
      tag(
        'g',
        { transform: `translate(${margin + Math.max(0, (width - 2 * margin - layout.width) / 2)} ${headHeight + 12})` },
        layout.routes.map((route) => edgeMark(route, diagram.edges[route.link])),
        selfLoops(diagram, layout),
        diagram.nodes.map((node, index) => nodeMark(node, layout.boxes[index])),
      ),
      legend.map(({ draw, text }, index) => [
        draw(margin, bottom + index * 20),
        label(margin + 44, bottom + index * 20 + 4, text, { size: 11, fill: 'dim' }),
      ]),
      hints.map((hint, index) => label(margin, bottom + legend.length * 20 + 12 + index * 16, hint, { size: 11, fill: 'retry' })),
    ],
  }
}

const notesOf = (node: DiagramNode): string[] =>
  [...(node.meets === null ? [] : [node.meets]), ...node.notes].flatMap((note) => brokenText(note, noteMax, (text) => textWidth(text, 10)))

function boxOf(node: DiagramNode): { id: string; width: number; height: number } {
  const notes = notesOf(node)
  const wide = Math.max(textWidth(node.id, 13, true), ...notes.map((note) => textWidth(note, 10)))
  return { id: node.id, width: Math.min(wide, 260) + 28, height: 32 + notes.length * noteHeight + (notes.length > 0 ? 4 : 0) }
}

const looks: Readonly<Record<DiagramNode['kind'], Attributes>> = {
  start: { fill: colour('panel'), stroke: colour('edge') },
  end: { fill: colour('panel'), stroke: colour('edge') },
  user: { fill: colour('panel'), stroke: colour('person') },
  agent: { fill: colour('panel'), stroke: colour('turn') },
  step: { fill: colour('panel'), stroke: colour('turn') },
  child: { fill: colour('panel'), stroke: colour('turn'), 'stroke-dasharray': '6 3' },
  ask: { fill: colour('panel'), stroke: colour('person') },
}

function nodeMark(node: DiagramNode, box: Placed | undefined): Inside {
  if (box === undefined) return null
  const { x, y, width, height } = box
  const round = node.kind === 'start' || node.kind === 'end' || node.kind === 'user' ? 16 : 6
  const notes = notesOf(node)
  const middle = y + height / 2
  const first = notes.length === 0 ? middle + 4.5 : middle - boxOf(node).height / 2 + 20
  return tag(
    'g',
    {},
    tag('title', {}, [node.id, node.meets, ...node.notes].filter((part) => part !== null).join('; ')),
    node.meets === null
      ? null
      : tag('rect', {
          x: x - 4,
          y: y - 4,
          width: width + 8,
          height: height + 8,
          rx: round + 4,
          fill: 'none',
          stroke: colour('good'),
          'stroke-width': 1.5,
        }),
    tag('rect', { x, y, width, height, rx: round, 'stroke-width': 1.5, ...looks[node.kind] }),
    label(x + width / 2, first, node.id, { size: 13, anchor: 'middle', weight: 600, max: width - 16 }),
    notes.map((note, index) =>
      label(x + width / 2, first + 16 + index * noteHeight, note, { size: 10, anchor: 'middle', fill: 'dim', max: width - 12 }),
    ),
  )
}

const lineLook = (notify: boolean): Attributes => ({
  fill: 'none',
  stroke: colour(notify ? 'retry' : 'edge'),
  'stroke-width': 1.4,
  'stroke-dasharray': notify ? '5 4' : undefined,
})

function edgeMark({ points, reversed }: Route, edge: DiagramEdge | undefined): Inside {
  const [first, last] = [points[0], points.at(-1)]
  if (edge === undefined || first === undefined || last === undefined) return null
  let way = `M${first.x} ${first.y}`
  for (const [index, { x, y }] of points.entries()) {
    const from = points[index - 1]
    if (from === undefined) continue
    const bend = (x - from.x) / 2
    if (index % 2 === 0) way += `C${from.x + bend} ${from.y} ${x - bend} ${y} ${x} ${y}`
    else if (x > from.x) way += `H${x}`
  }
  return [
    tag('path', { d: way, ...lineLook(edge.notify) }),
    reversed || edge.both ? arrow(first.x, first.y, -1, edge.notify) : null,
    reversed && !edge.both ? null : arrow(last.x, last.y, 1, edge.notify),
  ]
}

/** A head whose tip is at the side of a box. */
const arrow = (x: number, y: number, direction: 1 | -1, notify: boolean): Inside =>
  tag('path', { d: `M${x} ${y}l${-8 * direction} -4v8Z`, fill: colour(notify ? 'retry' : 'edge') })

/** An agent that may call itself. */
function selfLoops({ edges, nodes }: Diagram, { boxes }: Layout): Inside {
  return edges
    .filter(({ from, to }) => from === to)
    .map(({ from, notify }) => {
      const box = boxes[nodes.findIndex(({ id }) => id === from)]
      if (box === undefined) return null
      const [x, y] = [box.x + box.width / 2, box.y]
      return [
        tag('path', { d: `M${x - 14} ${y}c-6 -22 34 -22 28 0`, ...lineLook(notify) }),
        tag('path', { d: `M${x + 14} ${y}l-5 -8h8Z`, fill: colour('edge') }),
      ]
    })
}

interface LegendEntry {
  readonly text: string
  readonly draw: (x: number, y: number) => Inside
}

function legendOf({ kind, nodes, edges }: Diagram): LegendEntry[] {
  const line =
    (notify: boolean, both: boolean): LegendEntry['draw'] =>
    (x, y) => [
      tag('line', { x1: x, x2: x + 34, y1: y, y2: y, ...lineLook(notify) }),
      both ? arrow(x, y, -1, notify) : null,
      arrow(x + 34, y, 1, notify),
    ]
  const entries: LegendEntry[] = []
  if (edges.some(({ notify, both }) => !notify && !both))
    entries.push({ text: kind === 'graph' ? 'comes before' : 'may call, or hand over to', draw: line(false, false) })
  if (edges.some(({ both }) => both)) entries.push({ text: 'may call, and is answered', draw: line(false, true) })
  if (edges.some(({ notify }) => notify)) entries.push({ text: 'notifies; nobody waits for it', draw: line(true, false) })
  if (nodes.some(({ meets }) => meets !== null))
    entries.push({
      text: kind === 'graph' ? 'waits for more than one step' : 'a rendezvous: branches meet here and go on as one',
      draw: (x, y) =>
        tag('rect', { x: x + 5, y: y - 6, width: 24, height: 12, rx: 5, fill: 'none', stroke: colour('good'), 'stroke-width': 1.5 }),
    })
  return entries
}
