import type { Definition } from '../define/definition.js'
import { type DiagramNode, diagramOf } from './diagram.js'
import { plain } from './escape.js'

/** A topology or a graph as a Mermaid flowchart. Ids are ours; every name stands in a quoted label. */
export function diagramMermaid(definition: Definition): string {
  const { kind, name, nodes, edges } = diagramOf(definition)
  const ids = new Map(nodes.map(({ id }, index) => [id, `n${index}`]))
  const lines = edges.map(({ from, to, notify, both }) => `  ${ids.get(from)} ${notify ? '-.->' : both ? '<-->' : '-->'} ${ids.get(to)}`)
  return [
    'flowchart LR',
    `  %% ${kind} ${undirected(name)}`,
    ...nodes.map((node) => `  ${ids.get(node.id)}${shapeOf(node)}`),
    ...lines,
    '',
  ].join('\n')
}

function shapeOf(node: DiagramNode): string {
  const words = [node.id, ...(node.meets === null ? [] : [node.meets]), ...node.notes].map(quoted).join('<br/>')
  switch (node.kind) {
    case 'start':
    case 'end':
    case 'user':
      return `(["${words}"])`
    case 'agent':
    case 'step':
      return node.meets === null ? `["${words}"]` : `{{"${words}"}}`
    case 'ask':
      return `(("${words}"))`
    case 'child':
      return `[["${words}"]]`
  }
}

/** Mermaid obeys a directive (`%%{init: …}%%`) wherever it stands, in a comment too. */
const undirected = (text: string): string => plain(text).replace(/%(?=[%{])/g, '% ')

/** In a label, everything but letters, digits and plain signs is given by its number. */
function quoted(text: string): string {
  return plain(text).replace(/[^\p{L}\p{N}\p{M} .,:()/_-]/gu, (found) => `#${found.codePointAt(0)};`)
}
