import type { Failure } from '../kernel/failure.js'
import type { Usage } from '../kernel/usage.js'
import type { ModelAnswer } from './model-answer.js'
import { attemptsOf } from './model-failure.js'

/** What a call of a model has used. What attempts that failed have used is not known: they count as calls. */
export function usageOf(result: { readonly value: unknown } | { readonly error: Failure }): Usage {
  if ('error' in result) return { calls: attemptsOf(result.error), inputTokens: 0, outputTokens: 0 }
  const { attempts, inputTokens, outputTokens, costUsd } = result.value as ModelAnswer
  return { calls: attempts, inputTokens, outputTokens, ...(costUsd !== undefined && { costUsd }) }
}
