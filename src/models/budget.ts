import { CodedFailure } from '../define/failure-of.js'
import type { RunLimits } from '../kernel/shape.js'
import type { Reserve } from '../kernel/usage.js'
import { estimatedTokens } from './estimated-tokens.js'

/** What a token of a model costs, in USD; undefined if nobody knows. */
export type PriceOf = (model: string) => { readonly input: number; readonly output: number } | undefined

/** What is set aside for a call of a model in a run with a limit of tokens or of cost. */
export interface Budget {
  /** What the call may answer at most, so that it can't use more than was set aside. */
  readonly options: { readonly maxOutputTokens?: number }
  /** Null: nothing is limited, and nothing is set aside. */
  reserve(prompt: unknown, acting: unknown, model: () => Promise<string>): Promise<Reserve | null>
  /** How many tokens a text is counted as: what the provider tells. If it tells nothing, a limit counts what is estimated, or it would hold nothing. */
  counted(told: number | undefined, text: unknown): number
}

/**
 * The longest answer of a run with a limit; where the limit is small, a quarter of it. The same for every call, in whatever order they come, also
 * in a child run: how much was left for that depends on what was done before it.
 */
const outputMax = 4_096

const noBudget: Budget = { options: {}, reserve: async () => null, counted: (told = 0) => told }

export function budgetOf({ tokens, wholeTokens = tokens, costUsd }: RunLimits, priceOf: PriceOf): Budget {
  if (tokens === undefined && costUsd === undefined) return noBudget
  const maxOutputTokens = Math.max(1, Math.min(outputMax, Math.floor((wholeTokens ?? Number.POSITIVE_INFINITY) / 4)))
  const reserve = async (prompt: unknown, acting: unknown, model: () => Promise<string>): Promise<Reserve> => {
    const input = estimatedTokens(prompt) + estimatedTokens(acting)
    const used = input + maxOutputTokens
    if (costUsd === undefined) return { tokens: used, costUsd: 0 }
    const name = await model()
    const price = priceOf(name)
    if (price === undefined) throw unknownPrice(name)
    return { tokens: used, costUsd: input * price.input + maxOutputTokens * price.output }
  }
  return { options: { maxOutputTokens }, reserve, counted: (told, text) => told ?? estimatedTokens(text) }
}

/** A limit that can't be kept is not passed over. */
function unknownPrice(model: string): CodedFailure {
  const message = `the run has a limit of cost, and nobody knows what ${model} costs: limit \`tokens\` instead, or take a model whose price is known`
  return new CodedFailure({ code: 'MODEL_FAILED', message, retryable: false, at: {} })
}
