import type { Definition } from '../define/definition.js'
import { type Diagram, type DiagramNode, diagramOf } from './diagram.js'
import { plain } from './escape.js'
import { brokenText, cells, padded } from './text-size.js'
import { painted, unpainted } from './theme.js'
import type { TextOptions } from './timeline-text.js'

/** A topology or a graph as lines of text: each node, where it leads, and why branches meet there. */
export function diagramText(definition: Definition, { width = 100, colour = false }: TextOptions = {}): string {
  const paint = colour ? painted : unpainted
  const diagram = diagramOf(definition)
  const nameWidth = Math.min(Math.max(...diagram.nodes.map(({ id }) => cells(plain(id)))), Math.floor(width * 0.3))
  const left = ' '.repeat(nameWidth + 2)
  const lines = diagram.nodes.flatMap((node) => {
    const wrapped = (text: string): string[] => brokenText(plain(text), Math.max(20, width - nameWidth - 4), cells)
    const leads = leadsOf(diagram, node)
    const [first = '', ...more] = leads === '' ? [''] : wrapped(leads)
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

function leadsOf({ kind, edges }: Diagram, { id }: DiagramNode): string {
  if (kind === 'graph') {
    const after = edges.filter(({ to }) => to === id).map(({ from }) => from)
    return after.length === 0 ? '' : `after ${after.join(', ')}`
  }
  const to = (notify: boolean, both: boolean): string[] =>
    edges.flatMap((edge) => {
      if (edge.notify !== notify || edge.both !== both) return []
      if (edge.from === id) return [edge.to]
      return both && edge.to === id ? [edge.from] : []
    })
  const parts = [
    { arrow: '↔', names: to(false, true) },
    { arrow: '→', names: to(false, false) },
    { arrow: '⇢', names: to(true, false) },
  ]
  return parts
    .filter(({ names }) => names.length > 0)
    .map(({ arrow, names }) => `${arrow} ${names.join(', ')}`)
    .join('   ')
}
