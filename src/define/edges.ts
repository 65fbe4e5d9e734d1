import type { Edge } from '../kernel/shape.js'

// Flows as types: 'A | B -> C', 'A <-> B', 'A -> B -> C', 'A ~> B' (notify, alone in its string), { from, to }, patterns.
// What `flows.ts` parses at run time, these parse at compile time; they must agree.

type Trim<S extends string> = S extends ` ${infer R}` ? Trim<R> : S extends `${infer R} ` ? Trim<R> : S
type Nodes<S extends string, Acc = never> = S extends `${infer A}|${infer B}` ? Nodes<B, Acc | Trim<A>> : Acc | Trim<S>
type First<S extends string> = S extends `${infer A}->${string}` ? (A extends `${infer B}<` ? Nodes<B> : Nodes<A>) : Nodes<S>
/** The edges of a flow beside those that are known already: with these handed on, a flow of hundreds of nodes is no deeper than one of two. */
type Parse<F, Acc = never> = string extends F
  ? [string, string]
  : F extends `${infer A}->${infer B}`
    ? Parse<B, Acc | (A extends `${infer C}<` ? Pair<Nodes<C>, First<B>> | Pair<First<B>, Nodes<C>> : Pair<Nodes<A>, First<B>>)>
    : F extends `${infer A}~>${infer B}`
      ? Acc | Pair<Nodes<A>, Nodes<B>>
      : F extends { from: infer A extends string; to: infer B extends string }
        ? Acc | Pair<A, B>
        : Acc

/** Every edge from one of `A` to one of `B`. */
export type Pair<A extends string, B extends string> = A extends unknown ? (B extends unknown ? [A, B] : never) : never

/** Node names that are not agents. */
export type Reserved = 'Start' | 'End' | 'User'

/** Edges made by code instead of by hand; see `patterns`. */
export interface Pattern<E extends [string, string] = [string, string]> {
  readonly edges: readonly Edge[]
  readonly '~edges'?: E
}

/** The edges of flows, as a union of `[from, to]`. */
export type Edges<F> = F extends Pattern<infer E> ? E : F extends readonly (infer X)[] ? Parse<X> : never

/** The agents that edges name. */
export type Names<E> = E extends [infer A extends string, infer B extends string] ? Exclude<A | B, Reserved> : never

/** Where the edges of `N` lead: anywhere, if flows were made by code and their texts are not known. */
export type Targets<E, N> = E extends [N, infer B extends string]
  ? B
  : E extends [infer A, infer B extends string]
    ? string extends A
      ? B
      : never
    : never
