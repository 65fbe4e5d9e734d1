import type { RunResult } from '../../engine/tutti.js'
import type { ChoiceSeen } from './choices.js'
import type { Explained } from './explain.js'
import type { Class } from './outcome.js'
import type { Picture } from './picture.js'
import type { PctBound } from './walking.js'

/** `allow` only silences the note that there are choices. */
export interface Allowance {
  readonly kind: 'winner'
  readonly of: string
}

/** Who comes first where this agent, or this step of a graph, waits is meant to be a choice. */
export function winnerOf(agent: string): Allowance {
  if (typeof agent !== 'string' || agent === '') throw new TypeError("winnerOf takes the name of an agent: winnerOf('Editor')")
  return Object.freeze({ kind: 'winner', of: agent })
}

/** What a race check found. `independent`: one outcome for every fixed set of choices (early joins, timeouts, limits, stopped agents). */
export interface Exploration<O = unknown> {
  readonly independent: boolean
  /** Every order was played, or one that stands for it. */
  readonly exhaustive: boolean
  readonly schedules: number
  readonly distinct: number
  /** What chance brought: a schedule is played again with it. */
  readonly seed: string
  readonly outcomes: readonly {
    readonly digest: string
    readonly count: number
    readonly schedule: string
    readonly choices: string
    readonly result: RunResult<O>
  }[]
  readonly divergence?: {
    readonly kind: string
    readonly a: string
    readonly b: string
    readonly swap: readonly [string, string]
    readonly explain: string
  }
  readonly violations: readonly { readonly invariant: string; readonly schedule: string; readonly explain: string }[]
  /** The choices that orders made, allowed or not. */
  readonly choices: readonly ChoiceSeen[]
  /** What was not explored. Never empty without `exhaustive`. */
  readonly notExplored: readonly string[]
  readonly notes: readonly string[]
  /** All of it as plain data, for other programs. */
  data(): ExplorationData
  text(options?: { readonly color?: boolean }): string
  svg(): string
  /** One page that needs nothing beside it. */
  html(): string
  junit(): string
}

/** What a race check found, as plain data. */
export interface ExplorationData {
  readonly definition: string
  readonly independent: boolean
  readonly exhaustive: boolean
  readonly schedules: number
  readonly redundant: number
  readonly distinct: number
  readonly strategy: string
  readonly seed: string
  readonly outcomes: readonly {
    readonly digest: string
    readonly count: number
    readonly schedule: string
    readonly status: string
    readonly choices: string
  }[]
  readonly divergence: (Explained & { readonly pictures: readonly [Picture, Picture] }) | null
  readonly violations: readonly {
    readonly invariant: Class
    readonly schedule: string
    readonly explain: string
    readonly picture: Picture
  }[]
  /** The one schedule that was asked for, if one was, and what came of it. */
  readonly replayed: { readonly schedule: string; readonly status: string; readonly came: unknown; readonly picture: Picture } | null
  readonly choices: readonly ChoiceSeen[]
  readonly allowed: readonly string[]
  readonly bounds: readonly PctBound[]
  readonly notExplored: readonly string[]
  readonly notes: readonly string[]
}
