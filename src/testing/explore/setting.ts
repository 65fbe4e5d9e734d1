import type { Definition } from '../../define/definition.js'
import type { Maybe } from '../../define/maybe.js'
import type { Provided } from '../../define/resource.js'
import type { ModelFactory } from '../../models/model-factory.js'
import type { Recorded } from './recorded.js'
import type { Ask } from '../../inspect/ask.js'

/** Something that may go wrong; without 'timeout', virtual time moves only when nothing else can. */
export type Fault = 'crash' | 'lost-ack' | 'duplicate' | 'timeout' | { agent: string; error: string }

/** What somebody may ask of the run while it is under way. */
export type Steering = 'pause' | 'resume' | 'cancel'

/** The id of a run that was not recorded, and when it starts. */
export const runId = 'check'
export const startsAt = 1_000

/** What is said before a place that is in a child run; `run`: what its id adds to that of the run that is played. */
export const within = (run: string): string => (run === '' ? '' : `${run.slice(1)} `)

/** What is the same in all schedules. */
export interface Setting {
  /** The id of the run that is played. */
  readonly run: string
  /** Called for each schedule, and for each process of one. */
  readonly definition: () => Maybe<Definition>
  readonly resources: () => Maybe<readonly Provided[]>
  readonly input: unknown
  readonly models: ModelFactory | undefined
  readonly answers: ((ask: Ask) => unknown) | undefined
  readonly steering: readonly Steering[]
  readonly faults: readonly Fault[]
  /** What the keys and the random numbers of the run derive from. */
  readonly seed: string
  /** Whether acknowledgements of the store are events of their own. */
  readonly appends: boolean
  readonly invariants: boolean
  readonly stepsMax: number
  /** For how long something that is not the scheduler's is waited for. */
  readonly patienceMs: number
  /** Where that was waited for in vain, in any schedule. */
  readonly vain: Set<string>
  /** The run that is played in other orders, if it is one. */
  readonly recorded: Recorded | null
}

/** The faults that may happen to one thing that is let go, by number: what a schedule says. */
export type FaultAt =
  | { readonly kind: 'crash-before' | 'crash-after' | 'lost-ack' | 'duplicate' }
  | { readonly kind: 'agent'; readonly agent: string; readonly error: string }

const always: readonly FaultAt[] = [{ kind: 'crash-before' }, { kind: 'crash-after' }, { kind: 'lost-ack' }, { kind: 'duplicate' }]

/** Numbered the same whatever was asked for, so that a token means the same to everybody. */
export function faultOf(number: number, faults: readonly Fault[]): FaultAt | null {
  const agents = faults.flatMap((fault) => (typeof fault === 'string' ? [] : [fault]))
  const agent = agents[number - always.length]
  return always[number] ?? (agent === undefined ? null : { kind: 'agent', ...agent })
}

/** The numbers of the faults that may happen at a place of their own. */
export function faultNumbers(faults: readonly Fault[]): number[] {
  const agents = faults.filter((fault) => typeof fault !== 'string')
  return [
    ...(faults.includes('crash') ? [0, 1] : []),
    ...(faults.includes('lost-ack') ? [2] : []),
    ...(faults.includes('duplicate') ? [3] : []),
    ...agents.map((_, index) => always.length + index),
  ]
}
