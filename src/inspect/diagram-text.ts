import type { Definition } from '../define/definition.js'
import { type Diagram, type DiagramNode, diagramOf } from './diagram.js'
import { plain } from './escape.js'
import { brokenText, cells, inLines, padded } from './text-size.js'
import { painted, unpainted } from './theme.js'
import type { TextOptions } from './timeline-text.js'

/** A topology or a graph as lines of text: each node, where it leads, and why branches meet there. */
export function diagramText(definition: Definition, { width = 100, colour = false }: TextOptions = {}): string {
  const paint = colour ? painted : unpainted
  const diagram = diagramOf(definition)
  const nameWidth = Math.min(Math.max(...diagram.nodes.map(({ id }) => cells(plain(id)))), Math.floor(width * 0.3))
  const left = ' '.repeat(nameWidth + 2)
  const lines = diagram.nodes.flatMap((node) => {
    const room = Math.max(20, width - nameWidth - 4)
    const wrapped = (text: string): string[] => brokenText(plain(text), room, cells)
    const [first = '', ...more] = leadLines(leadsOf(diagram, node), room)
    return [
      `  ${paint(padded(plain(node.id), nameWidth), 'path')}  ${first}`.trimEnd(),
      ...more.map((line) => `  ${left}${line}`),
      ...(node.meets === null ? [] : wrapped(`◆ ${node.meets}`).map((line) => `  ${left}${paint(line, 'good')}`)),
      ...node.notes.flatMap((note) => wrapped(`· ${note}`)).map((line) => `  ${left}${paint(line, 'dim')}`),
    ]
  })
  const hints = diagram.hints.flatMap((hint) => brokenText(plain(`hint: ${hint}`), width, cells)).map((line) => paint(line, 'retry'))
  const head = `${plain(diagram.name)}${paint(` (${diagram.kind}, version ${plain(diagram.version)})`, 'dim')}`
  return [head, '', ...lines, ...(hints.length === 0 ? [] : ['', ...hints]), ''].join('\n')
}

/** Where a node leads, or what comes before it: how, and to or from whom. */
interface Lead {
  readonly how: string
  readonly names: readonly string[]
}

/** On one line if there is room, else each on lines of its own; how stands before the first name, never at the end of a line. */
function leadLines(leads: readonly Lead[], room: number): string[] {
  const parts = leads.map(({ how, names }) =>
    names.map((name, index) => `${index === 0 ? `${how} ` : ''}${plain(name)}${index < names.length - 1 ? ',' : ''}`),
  )
  const whole = parts.map((part) => part.join(' ')).join('   ')
  return cells(whole) <= room ? [whole] : parts.flatMap((part) => inLines(part, room, cells))
}

function leadsOf({ kind, edges }: Diagram, { id }: DiagramNode): Lead[] {
  const to = (notify: boolean, both: boolean): string[] =>
    edges.flatMap((edge) => {
      if (edge.notify !== notify || edge.both !== both) return []
      if (edge.from === id) return [edge.to]
      return both && edge.to === id ? [edge.from] : []
    })
  const leads =
    kind === 'graph'
      ? [{ how: 'after', names: edges.filter((edge) => edge.to === id).map(({ from }) => from) }]
      : [
          { how: '↔', names: to(false, true) },
          { how: '→', names: to(false, false) },
          { how: '⇢', names: to(true, false) },
        ]
  return leads.filter(({ names }) => names.length > 0)
}
