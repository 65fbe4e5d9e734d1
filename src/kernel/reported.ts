import { byId } from './ids.js'
import type { JoinData, Slot } from './join.js'
import type { Barrier, Contribution, SettledSlot } from './state.js'

/** Which slots keep their result: those that decided a choice, or, null, all of them. */
const countedOf = (deciding: readonly number[] | null): ReadonlySet<number> | null => (deciding === null ? null : new Set(deciding))

function slotOf(index: number, call: { readonly to: string; readonly request?: unknown }, settled: SettledSlot | undefined): Slot {
  const { to, request } = call
  switch (settled?.status) {
    case 'arrived':
      return { index, to, request, status: 'arrived', by: settled.by, value: settled.value }
    case 'failed':
      return { index, to, request, status: 'failed', by: settled.by, error: settled.error }
    case 'escaped':
      return { index, to, request, status: 'escaped', by: null }
    case 'cancelled':
    case 'skipped':
    case undefined:
      return { index, to, request, status: 'cancelled', by: null }
  }
}

/** The slots as they are reported: in slot order; those that don't count read cancelled, whatever became of them. */
export function reportedSlots(barrier: Barrier, deciding: readonly number[] | null): Slot[] {
  const { calls, slots } = barrier
  const counted = countedOf(deciding)
  const reported: Slot[] = []
  for (let index = 0; index < calls.length; index++) {
    const call = calls[index]
    if (call !== undefined) reported.push(slotOf(index, call, counted?.has(index) === false ? undefined : slots.get(index)))
  }
  return reported
}

/** How many slots are reported as what. */
export type Tally = { readonly [S in Slot['status']]: number }

export function tallyOf(barrier: Barrier, deciding: readonly number[] | null): Tally {
  const { arrived, failed, escaped, calls } = barrier
  if (deciding === null) return { arrived, failed, escaped, cancelled: calls.length - arrived - failed - escaped }
  const tally = { arrived: 0, failed: 0, escaped: 0, cancelled: 0 }
  for (const { status } of reportedSlots(barrier, deciding)) tally[status]++
  return tally
}

/** What the counting slots left for this barrier (by branch id), and what goes on outwards. */
export function contributions(barrier: Barrier, deciding: readonly number[] | null): { here: Contribution[]; outward: Contribution[] } {
  const counted = countedOf(deciding)
  const here: Contribution[] = []
  const outward: Contribution[] = []
  for (let index = 0; index < barrier.calls.length; index++) {
    const slot = barrier.slots.get(index)
    if (counted?.has(index) === false || (slot?.status !== 'arrived' && slot?.status !== 'escaped')) continue
    if (slot.carried.length > 0) for (const item of slot.carried) (item.for === barrier.id ? here : outward).push(item)
  }
  return { here: byId(here, (item) => item.branch), outward }
}

/** The values of the slots that arrived, in slot order; a slot that arrived with none gives `undefined`, which JSON can't hold in a list. */
export function valuesOf(slots: readonly Slot[]): readonly unknown[] {
  const values: unknown[] = []
  for (let place = 0; place < slots.length; place++) {
    const slot = slots[place] as Slot
    if (slot.status === 'arrived') values.push(slot.value)
  }
  return values
}

/** What the waiting agent is shown of a join. */
export function joinData(ok: boolean, slots: readonly Slot[], extra: readonly Contribution[]): JoinData {
  return { ok, slots, values: valuesOf(slots) as JoinData['values'], extra: extra.map(({ by, value }) => ({ by, value })) }
}
