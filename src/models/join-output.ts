import type { JoinData, Slot } from '../kernel/join.js'

type JoinOutput = { readonly type: 'json'; readonly value: unknown }

/** What came of a fork, for each of the calls that made it: its own slots, in order. What nobody asked for stands with the last. */
export function joinOutputs({ slots, extra }: JoinData, widths: readonly number[]): JoinOutput[] {
  const calls = widths.length === 0 ? [slots.length] : widths
  let from = 0
  return calls.map((width, place) => {
    const last = place === calls.length - 1
    const own = slots.slice(from, last ? undefined : from + width)
    from += width
    const more = last && extra.length > 0 ? { extra: extra.map(({ by, value }) => ({ agent_name: by, value: value ?? null })) } : {}
    return { type: 'json', value: { results: own.map(slotOutput), ...more } }
  })
}

function slotOutput(slot: Slot): object {
  switch (slot.status) {
    case 'arrived':
      return { agent_name: slot.to, status: 'arrived', by: slot.by, value: slot.value ?? null }
    case 'failed':
      return { agent_name: slot.to, status: 'failed', error: slot.error.message }
    case 'escaped':
    case 'cancelled':
      return { agent_name: slot.to, status: slot.status }
  }
}
