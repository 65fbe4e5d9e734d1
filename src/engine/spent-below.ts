import { isOver, shapeOf, type State } from '../kernel/state.js'
import type { Maybe } from '../define/maybe.js'
import { plus, type Reserve, takenBy } from '../kernel/usage.js'
import { childrenOf, patiently } from './child-run.js'
import type { Engine } from './engine.js'
import type { Seam } from './seam.js'

/*
 * What runs may use together is set aside in many journals: each child run has its own.
 *
 * 1. A call sets aside in its own run first and then looks at all others. Of several that do so at once, in whatever processes, the last sees
 *    what all of them have set aside: no order lets more of them start than there is room for.
 * 2. Who finds that it is too much says so of the run whose limit it is, naming the event that it has seen of it.
 */

/** Looks that have not begun, by the run whose child runs they are for: calls that have set aside by then have one together. */
export type Looks = Map<string, Promise<boolean>>

/** Whether a call that has set aside what it may use is within what the runs above may use. If it is not, they fail, and it must not start. */
export function isWithinAbove(engine: Engine, { run }: State, later: Seam['later']): Maybe<boolean> {
  if (run === null || run.parent === null) return true
  const { wholeTokens, wholeCostUsd } = run.shape.limits
  // No run above has such a limit.
  if (wholeTokens === undefined && wholeCostUsd === undefined) return true
  const { run: parent } = run.parent
  const known = engine.looks.get(parent)
  if (known !== undefined) return known
  const look = new Promise<void>((resolve) => later(resolve)).then(() => {
    engine.looks.delete(parent)
    return areWithin(engine, parent)
  })
  engine.looks.set(parent, look)
  return look
}

/** A run and all above it, from the first of them down. */
async function areWithin(engine: Engine, id: string): Promise<boolean> {
  const above = (await patiently(engine, () => engine.current(id)))?.state.run?.parent?.run
  return (above === undefined || (await areWithin(engine, above))) && isWithin(engine, id)
}

async function isWithin(engine: Engine, id: string): Promise<boolean> {
  for (;;) {
    const state = (await patiently(engine, () => engine.current(id)))?.state
    // What it waits for is being told to stop.
    if (state === undefined || isOver(state) || state.closing || state.outcome !== null) return false
    const { tokens = Number.POSITIVE_INFINITY, costUsd = Number.POSITIVE_INFINITY } = shapeOf(state).limits
    const below = await takenBelow(engine, state)
    const all = plus(takenBy(state.spent), below)
    // A billionth of a dollar is no crossing, as in the kernel.
    if (all.tokens <= tokens && all.costUsd <= costUsd + 1e-9) return true
    await patiently(engine, () => engine.submit(id, { type: 'run.overspend', more: below, seq: state.seq }))
  }
}

/** What the runs below one that are not counted by it yet have used and set aside. */
async function takenBelow(engine: Engine, state: State): Promise<Reserve> {
  const each = await Promise.all(
    childrenOf(state).map(async ({ id }) => {
      const child = (await patiently(engine, () => engine.current(id)))?.state
      return child === undefined ? nothing : plus(takenBy(child.spent), await takenBelow(engine, child))
    }),
  )
  return each.reduce((sum, one) => plus(sum, one), nothing)
}

const nothing: Reserve = Object.freeze({ tokens: 0, costUsd: 0 })
