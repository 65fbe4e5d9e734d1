/** One call in a history: when it was made and when it returned, on one clock of the observer's, and what came of it. */
export interface Call<Op extends string = string> {
  readonly client: number
  readonly op: Op
  readonly from: number
  readonly to: number
  readonly result: string
}

/** What something does when it is called by one at a time: the result, and the state it then is in. */
export type Sequential<State, Op extends string> = (state: State, op: Op) => { readonly result: string; readonly next: State }

/**
 * Whether there is an order of the calls in which each takes effect at one moment between its call and its return, and the results are those
 * of the sequential thing: a search after Wing and Gong. What was tried from a state with the same calls left is not tried again. Gives such
 * an order, or null.
 */
export function linearization<State, Op extends string>(
  history: readonly Call<Op>[],
  first: State,
  model: Sequential<State, Op>,
): readonly Call<Op>[] | null {
  const tried = new Set<string>()
  const search = (left: readonly Call<Op>[], state: State): readonly Call<Op>[] | null => {
    if (left.length === 0) return []
    const key = `${left.map(({ from }) => from).join()} ${JSON.stringify(state)}`
    if (tried.has(key)) return null
    tried.add(key)
    // Whoever was called after another had returned can't come before it.
    const earliest = Math.min(...left.map(({ to }) => to))
    for (const call of left) {
      if (call.from > earliest) continue
      const { result, next } = model(state, call.op)
      if (result !== call.result) continue
      const rest = search(
        left.filter((other) => other !== call),
        next,
      )
      if (rest !== null) return [call, ...rest]
    }
    return null
  }
  return search(history, first)
}

/** Records what clients do to one thing at once: each makes its calls one after the other, all clients at the same time. */
export async function record<Op extends string>(
  clients: readonly (readonly Op[])[],
  call: (client: number, op: Op) => Promise<string>,
): Promise<Call<Op>[]> {
  let now = 0
  const history: Call<Op>[] = []
  await Promise.all(
    clients.map(async (ops, client) => {
      for (const op of ops) {
        const from = ++now
        const result = await call(client, op)
        history.push({ client, op, from, to: ++now, result })
      }
    }),
  )
  return history
}

/** A history as one reads it. */
export function shown(history: readonly Call[]): string {
  return [...history]
    .sort((a, b) => a.from - b.from)
    .map(({ client, op, from, to, result }) => `${client}: ${op} [${from}, ${to}] ${result}`)
    .join('\n')
}
