import type { BranchState } from './action.js'
import type { Goes } from './event.js'
import type { Failure } from './failure.js'
import { ReadyUndos } from './ready-undos.js'
import { Trie } from './trie.js'

/**
 * What a run has done that may have to be undone (KERNEL §13), and how far undoing it has come. Part of the state of a run.
 *
 * 1. `nodes` are what was done and where such lines of work joined: `after` names what each came because of. It has no cycle.
 * 2. `frontier` is, of each branch, the last node on its way: what it does next comes because of that.
 * 3. An entry belongs to the first plan that takes it, and is compensated once.
 * 4. All of it stays empty in a run with nothing to undo.
 */
export interface Undo {
  readonly nodes: Trie<DoneNode>
  readonly frontier: Trie<string>
  /** The open forks with `compensate: true`, and the nodes under each: its plan looks at no others, however much the run has done. */
  readonly forks: Trie<Trie<true>>
  /** By the barrier that they belong to, `#` for the run's own. */
  readonly plans: Trie<Plan>
  /** Entries whose undo may start. */
  readonly ready: ReadyUndos
  readonly running: Trie<UndoAttempt>
  /** Of the barriers that fired by choice: the slots that count. */
  readonly decided: Trie<readonly number[]>
  /** What is not undone and never will be. */
  readonly left: Trie<Left>
  /** Where something has been undone: the barriers, with the seats of who waited there. */
  readonly undone: Trie<Path>
  /** Of detached barriers: the seats of who started them. */
  readonly origins: Trie<readonly Seat[]>
}

/** A node that is no entry is where lines of work joined. */
export interface DoneNode {
  readonly id: string
  readonly after: readonly string[]
  readonly entry: Entry | null
}

/** One seat on the way from a branch outwards. */
export interface Seat {
  readonly barrier: string
  readonly slot: number
}

/** The seats of a branch, out to the root or to the detached barrier that it is under: what is beyond that is kept once, with it. */
export interface Path {
  readonly seats: readonly Seat[]
}

/** What was done, by whom, and what its undo is given. */
export interface Entry {
  readonly id: string
  readonly what: 'turn' | 'step' | 'activity' | 'child'
  readonly branch: string
  /** The agent or the step. */
  readonly agent: string
  readonly turn: number
  readonly path: Path
  /** How it is known that it was done; `late`: after its attempt was aborted; `unknown`: nobody can say whether it was. */
  readonly known: 'returned' | 'late' | 'unknown'
  /** Of an activity. */
  readonly tool?: string
  /** What its idempotency key ends with; of a child run, its id. */
  readonly key?: string
  readonly input?: unknown
  readonly output?: unknown
  readonly item?: unknown
  /** The results of the turn's activities, by key. */
  readonly activities?: Readonly<Record<string, unknown>>
  /** `done`: no plan has taken it. */
  readonly status: 'done' | 'pending' | 'compensating' | 'compensated' | 'failed'
  /** The barrier whose plan has taken it. */
  readonly plan: string | null
  readonly attempt: number
  readonly failures: number
  /** Grows with each change. */
  readonly revision: number
}

/** A plan waits until everything under it has ended, runs, and is over once each of its entries is settled. */
export type Plan = {
  readonly barrier: string
  /** The seats of the branch that waits for it: the plans of the barriers there wait for this one. */
  readonly path: Path
  /** What becomes of the branch that waits for it; null: nobody does, or not any more. */
  readonly onward: Onward | null
} & (
  | { readonly status: 'waiting' }
  | {
      readonly status: 'running'
      /** How many of its entries are not settled. */
      readonly open: number
      /** What is not cleared yet: how many of those that came because of it are not. */
      readonly waits: Trie<Waiting>
    }
  | { readonly status: 'over' }
)

export interface Waiting {
  readonly after: readonly string[]
  readonly on: number
  readonly entry: boolean
}

/** What was decided about the waiting branch when its fork fired; `all`: the join has failed, and everything under it is undone. */
export interface Onward {
  readonly goes: Goes
  readonly all: boolean
  readonly state?: BranchState
  readonly error?: Failure
}

/** One attempt at an undo. */
export interface UndoAttempt {
  readonly of: string
  readonly attempt: number
  readonly revision: number
  readonly at: number
  readonly seq: number
}

export interface Left {
  readonly branch: string
  readonly error: Failure
}

/** What an aborted attempt may still turn out to have done. */
export interface AbortedWork {
  readonly path: Path
  readonly after: string | null
  readonly key: string
  readonly input?: unknown
  readonly item?: unknown
  /** The results of those of its activities that had ended, by key. */
  readonly activities?: Readonly<Record<string, unknown>>
  /** Its activities that were started, can be undone, and have not ended, by key. */
  readonly open: readonly { readonly id: string; readonly key: string; readonly tool: string; readonly input: unknown }[]
  /** It only slept when its run was given back, and nobody has had that since. */
  readonly asleep?: true
}

export const nothingDone: Undo = Object.freeze({
  nodes: Trie.empty<DoneNode>(),
  frontier: Trie.empty<string>(),
  forks: Trie.empty<Trie<true>>(),
  plans: Trie.empty<Plan>(),
  ready: ReadyUndos.none,
  running: Trie.empty<UndoAttempt>(),
  decided: Trie.empty<readonly number[]>(),
  left: Trie.empty<Left>(),
  undone: Trie.empty<Path>(),
  origins: Trie.empty<readonly Seat[]>(),
})
