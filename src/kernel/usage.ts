/** What an activity has used: calls of a model, each attempt counted, and what they took. */
export interface Usage {
  readonly calls: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** Absent where the price is not known. */
  readonly costUsd?: number
  /** Of a success that a later attempt was given back: its calls were counted when they were made, and are told for what is told by their number. */
  readonly counted?: true
  /** Of a run: what was set aside in it for calls of which nobody learned what they used. It counts for limits, and is told to nobody. */
  readonly unheard?: Reserve
}

/** What is set aside for an activity before it starts, so that no order can take a run over its limit. */
export interface Reserve {
  readonly tokens: number
  readonly costUsd: number
}

/** What a run has used so far, and what is set aside for activities that have started. */
export interface Spent {
  readonly tokens: number
  readonly costUsd: number
  readonly reserved: Reserve
}

export const nothingSpent: Spent = Object.freeze({ tokens: 0, costUsd: 0, reserved: Object.freeze({ tokens: 0, costUsd: 0 }) })

/** An activity has started: its reserve is set aside. */
export function reserving(spent: Spent, reserve: Reserve): Spent {
  return { ...spent, reserved: plus(spent.reserved, reserve, 1) }
}

/** An activity is over: what it used counts instead of what was set aside for it. */
export function settling(spent: Spent, reserve: Reserve | undefined, used: Reserve): Spent {
  return {
    tokens: spent.tokens + used.tokens,
    costUsd: spent.costUsd + used.costUsd,
    reserved: reserve === undefined ? spent.reserved : plus(spent.reserved, reserve, -1),
  }
}

/** What an activity used, as limits count it. */
export function usedBy(usage: Usage | undefined): Reserve {
  const told = { tokens: (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0), costUsd: usage?.costUsd ?? 0 }
  return usage?.unheard === undefined ? told : plus(told, usage.unheard)
}

/** What is used and what is set aside, together. */
export function takenBy({ reserved, ...used }: Spent): Reserve {
  return plus(used, reserved, 1)
}

export function plus(a: Reserve, b: Reserve, sign: 1 | -1 = 1): Reserve {
  return { tokens: a.tokens + sign * b.tokens, costUsd: a.costUsd + sign * b.costUsd }
}
