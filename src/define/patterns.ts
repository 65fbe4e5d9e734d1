import type { Edge } from '../kernel/shape.js'
import type { Pair, Pattern } from './edges.js'
import { aRecord, aText, type Kind, optionProblems, shown, texts } from './option-check.js'

/** A tree of names: `{ Chief: { Editor: {}, Writer: {} } }`. */
export type Tree<N extends string = string> = { readonly [K in N]?: Tree<N> }

type Within<T> = T extends object ? { [K in keyof T]: (K & string) | Within<T[K]> }[keyof T] : never

/** The types that `patterns` gives: what each may lead to. */
export interface Patterns {
  /** The hub is started, calls the spokes, hears from them and finishes. */
  hubAndSpoke<const H extends string, const S extends string>(o: {
    hub: H
    spokes: readonly S[]
  }): Pattern<['Start', H] | [H, 'End'] | Pair<H, S> | Pair<S, H>>
  /** A hub and spokes of which each may finish the run itself. */
  star<const H extends string, const S extends string>(o: {
    hub: H
    spokes: readonly S[]
  }): Pattern<['Start', H] | [H, 'End'] | Pair<H, S> | Pair<S, H> | Pair<S, 'End'>>
  /** Each calls those below it and answers the one above; the top is started and finishes. */
  hierarchy<const N extends string>(tree: Tree<N>): Pattern<Pair<'Start' | N, N> | Pair<N, 'End'>>
  // The names of a deeper tree are not inferred by the first form: TypeScript looks two levels down.
  hierarchy<const T extends Tree>(tree: T): Pattern<Pair<'Start' | Within<T>, Within<T>> | Pair<Within<T>, 'End'>>
  /** One after the other, from Start to End. */
  pipeline<const S extends string>(stages: readonly S[]): Pattern<Pair<S | 'Start', S | 'End'>>
  /** Everyone may call everyone and finish; `entry` is started. */
  mesh<const S extends string>(o: { entry: NoInfer<S>; members: readonly S[] }): Pattern<Pair<'Start' | S, S> | Pair<S, 'End'>>
  /** Each hands on to the next, the last to the first again; the first is started, and each may finish, since nobody knows beforehand on which round it is done. */
  ring<const S extends string>(members: readonly S[]): Pattern<Pair<'Start' | S, S> | Pair<S, 'End'>>
  /** One calls many and hears nothing back: each of them finishes, or the one does if it called nobody. Several finishes need a `result`. */
  broadcast<const H extends string, const S extends string>(o: {
    from: H
    to: readonly S[]
  }): Pattern<['Start', H] | [H, 'End'] | Pair<H, S> | Pair<S, 'End'>>
}

/** Topologies that have a name: each is nothing but its edges, in the order a reader would write them. */
export const patterns: Patterns = Object.freeze({
  hubAndSpoke: (o) => {
    const { hub, spokes } = taken('hubAndSpoke', o, { hub: aText, spokes: texts })
    return pattern([edge('Start', hub), ...spokes.flatMap((spoke) => pair(hub, spoke)), edge(hub, 'End')])
  },

  star: (o) => {
    const { hub, spokes } = taken('star', o, { hub: aText, spokes: texts })
    return pattern([
      edge('Start', hub),
      ...spokes.flatMap((spoke) => pair(hub, spoke)),
      edge(hub, 'End'),
      ...spokes.map((spoke) => edge(spoke, 'End')),
    ])
  },

  hierarchy: (tree) => {
    if (!isTree(tree)) throw new TypeError(`patterns.hierarchy takes a tree of names: { Chief: { Editor: {}, Writer: {} } }`)
    const roots = Object.keys(tree)
    return pattern([...roots.map((root) => edge('Start', root)), ...below(tree), ...roots.map((root) => edge(root, 'End'))])
  },

  pipeline: (stages) => {
    checkList('pipeline', stages)
    return pattern(stages.length === 0 ? [] : ['Start', ...stages].map((stage, index) => edge(stage, stages[index] ?? 'End')))
  },

  mesh: (o) => {
    const { entry, members } = taken('mesh', o, { entry: aText, members: texts })
    return pattern([
      edge('Start', entry),
      ...members.flatMap((from) => members.filter((to) => to !== from).map((to) => edge(from, to))),
      ...members.map((member) => edge(member, 'End')),
    ])
  },

  ring: (members) => {
    checkList('ring', members)
    return pattern([
      ...members.slice(0, 1).map((first) => edge('Start', first)),
      ...(members.length > 1 ? members.map((member, index) => edge(member, members[(index + 1) % members.length] ?? member)) : []),
      ...members.map((member) => edge(member, 'End')),
    ])
  },

  broadcast: (o) => {
    const { from, to } = taken('broadcast', o, { from: aText, to: texts })
    return pattern([edge('Start', from), ...to.map((each) => edge(from, each)), edge(from, 'End'), ...to.map((each) => edge(each, 'End'))])
  },
} satisfies { [K in keyof Patterns]: (...args: Parameters<Patterns[K]>) => Pattern<any> }) as Patterns

/** What a pattern was given, if it is what it takes. What names may be, and who there is, the topology finds out. */
function taken<T extends object>(name: string, given: T, kinds: Readonly<Record<keyof T & string, Kind>>): T {
  const needed = Object.keys(kinds)
  if (!aRecord.is(given)) throw new TypeError(`patterns.${name} takes { ${needed.join(', ')} }, not ${shown(given)}`)
  const problems = [
    ...needed.filter((key) => given[key as keyof T] === undefined).map((key) => `it needs \`${key}\``),
    ...optionProblems(given as Readonly<Record<string, unknown>>, kinds, '').map(({ message }) => message),
  ]
  if (problems.length > 0) throw new TypeError(`patterns.${name}: ${problems.join('; ')}`)
  return given
}

function checkList(name: string, given: unknown): void {
  if (!texts.is(given)) throw new TypeError(`patterns.${name} takes ${texts.words}, the names, not ${shown(given)}`)
}

function isTree(given: unknown): given is Tree {
  return aRecord.is(given) && Object.values(given as object).every((below) => below === undefined || isTree(below))
}

/** Somebody may stand in several places of a tree, so an edge is kept only once. */
function below(tree: Tree): Edge[] {
  const edges = new Map(pairsIn(tree).map((each) => [JSON.stringify(each), each]))
  return [...edges.values()]
}

function pairsIn(tree: Tree): Edge[] {
  return Object.entries(tree).flatMap(([parent, children = {}]) => [
    ...Object.keys(children).flatMap((child) => pair(parent, child)),
    ...pairsIn(children),
  ])
}

function edge(from: string, to: string): Edge {
  return Object.freeze({ from, to })
}

function pair(a: string, b: string): Edge[] {
  return [edge(a, b), edge(b, a)]
}

function pattern(edges: readonly Edge[]): Pattern<any> {
  return Object.freeze({ edges: Object.freeze(edges) })
}
