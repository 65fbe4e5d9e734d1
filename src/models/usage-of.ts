import type { Failure } from '../kernel/failure.js'
import type { Reserve, Usage } from '../kernel/usage.js'
import type { ModelAnswer } from './model-answer.js'
import { attemptsOf } from './model-failure.js'

/** What one attempt has used. */
export type Used = Pick<ModelAnswer, 'inputTokens' | 'outputTokens' | 'costUsd'>

/** What a call of a model has used, with those of its attempts that broke off. Attempts that were refused have used nothing: they count as calls. */
export function usageOf(result: { readonly value: unknown } | { readonly error: Failure }, broken: readonly Used[]): Usage {
  const used: readonly Used[] = 'error' in result ? broken : [...broken, result.value as ModelAnswer]
  const sum = (of: (one: Used) => number): number => used.reduce((total, one) => total + of(one), 0)
  return {
    calls: 'error' in result ? attemptsOf(result.error) : (result.value as ModelAnswer).attempts,
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    ...(isKnown(used) && { costUsd: sum(({ costUsd = 0 }) => costUsd) }),
  }
}

/** What an attempt has used, as limits count it. */
export function reserveOf({ inputTokens, outputTokens, costUsd = 0 }: Used): Reserve {
  return { tokens: inputTokens + outputTokens, costUsd }
}

/** A cost of which only a part is known is not. */
function isKnown(used: readonly Used[]): boolean {
  const unknown = used.some(({ costUsd, inputTokens, outputTokens }) => costUsd === undefined && inputTokens + outputTokens > 0)
  return !unknown && used.some(({ costUsd }) => costUsd !== undefined)
}
