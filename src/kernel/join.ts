import type { Failure } from './failure.js'

/** How many slots must deliver. */
export type Policy = 'all' | 'any' | 'majority' | 'settled' | { quorum: number } | { ratio: number }

/** What a fork says about its barrier. */
export type Join = Policy | { policy: Policy; timeoutMs?: number; stragglers?: 'cancel' | 'wait'; insufficient?: 'fail' | 'resume' | 'ask' }

/** One seat of a barrier as the waiting agent sees it. */
export type Slot<To extends string = string, V = any> = { readonly index: number; readonly to: To; readonly request: unknown } & (
  | { readonly status: 'arrived'; readonly by: string; readonly value: V }
  | { readonly status: 'failed'; readonly by: string | null; readonly error: Failure; readonly value?: undefined }
  | { readonly status: 'escaped' | 'cancelled'; readonly by: null; readonly value?: undefined }
)

/** What a join gives: in the order of the fork, whoever came first. */
export interface JoinData<R = Record<string, any>> {
  readonly ok: boolean
  readonly slots: readonly { [K in keyof R]: Slot<K & string, R[K]> }[keyof R][]
  /** Of the slots that arrived, in slot order. */
  readonly values: readonly R[keyof R][]
  readonly extra: readonly { readonly by: string; readonly value: unknown }[]
}

/** A join with every default filled in. */
export interface JoinSpec {
  readonly policy: Policy
  readonly timeoutMs: number | null
  readonly stragglers: 'cancel' | 'wait'
  readonly insufficient: 'fail' | 'resume' | 'ask'
}

/** Fills in the defaults: stragglers are waited for under `all` and `settled`, cancelled under the others. */
export function joinSpec(join: Join | undefined): JoinSpec {
  const given = typeof join === 'object' && 'policy' in join ? join : { policy: join ?? 'all' }
  const waits = given.policy === 'all' || given.policy === 'settled'
  return {
    policy: given.policy,
    timeoutMs: given.timeoutMs ?? null,
    stragglers: given.stragglers ?? (waits ? 'wait' : 'cancel'),
    insufficient: given.insufficient ?? 'fail',
  }
}

/** How many of `width` slots must deliver for the join to be ok. */
export function needOf(policy: Policy, width: number): number {
  if (policy === 'all') return width
  if (policy === 'any') return 1
  if (policy === 'majority') return Math.floor(width / 2) + 1
  if (policy === 'settled') return 0
  return 'quorum' in policy ? policy.quorum : Math.ceil(policy.ratio * width - 1e-9)
}

/** What is wrong with a join over `width` slots, or null. */
export function joinProblem(spec: JoinSpec, width: number): string | null {
  const { policy, stragglers, timeoutMs } = spec
  if (policy === 'settled' && stragglers === 'cancel') return "a 'settled' join can't cancel stragglers: it waits for all of them"
  if (typeof policy === 'object' && 'ratio' in policy && !(policy.ratio > 0 && policy.ratio <= 1))
    return `the ratio of a join must be above 0 and at most 1, not ${policy.ratio}`
  if (typeof policy === 'object' && 'quorum' in policy && !(Number.isInteger(policy.quorum) && policy.quorum >= 1))
    return `the quorum of a join must be a whole number of at least 1, not ${policy.quorum}`
  if (timeoutMs !== null && !(Number.isFinite(timeoutMs) && timeoutMs >= 0))
    return `the timeout of a join must be a number of milliseconds, not ${timeoutMs}`
  const need = needOf(policy, width)
  if (need > width) return `the join ${JSON.stringify(policy)} needs ${need} of only ${width} slots`
  return null
}
