import type { Command } from '../../kernel/command.js'
import { decide } from '../../kernel/decide.js'
import type { Event } from '../../kernel/event.js'
import type { Code } from '../../kernel/shape.js'
import type { State } from '../../kernel/state.js'
import type { Commutes } from './exhaustive.js'
import type { Option } from './happening.js'
import type { Situation } from './scheduler.js'

/**
 * What commutes in a state of the run.
 *
 * - What is no option any more once the other was taken has no other order.
 * - Two options that may run code of the user's never do: they may share what nobody sees.
 * - What only the kernel decides commutes with code that runs, unless it stops some: a turn is given what it knows when it is owed.
 * - Two decisions of the kernel commute if both orders give the same events; that is tried.
 */
export function commutingIn({ state, at, code }: Situation): Commutes {
  return (a, b) => {
    if (!lasts(a) || !lasts(b)) return false
    if (a.some(({ lane }) => b.some((other) => other.lane === lane))) return false
    if (a.some(isOutside(state)) || b.some(isOutside(state))) return false
    const codeInA = a.some(({ runsCode }) => runsCode)
    const codeInB = b.some(({ runsCode }) => runsCode)
    if (codeInA && codeInB) return false
    const [decided, other] = codeInA ? [b, a] : [a, b]
    const first = commandOf(decided)
    if (first === null) return false
    if (codeInA || codeInB) return !stopsSomebody(state, first, at, code)
    const second = commandOf(other)
    return second !== null && sameEvents(state, first, second, at, code)
  }
}

/**
 * Whether an option is still there after another was taken. All code that waits is no more once something adds to it; the turns of one
 * commit wait together until one of them begins.
 */
const lasts = (option: Option): boolean =>
  option.length === 1 || option.every(({ kind, born }) => kind === 'start' && born === option[0]?.born)

/** Time, acknowledgements, steering and other runs may change anything. */
const isOutside =
  ({ run: own }: State) =>
  ({ kind, run }: Option[number]): boolean =>
    run !== own?.id || kind === 'clock' || kind === 'append' || kind === 'steering'

function commandOf(option: Option): Command | null {
  const [only] = option
  return option.length === 1 ? (only?.command ?? null) : null
}

function stopsSomebody(state: State, command: Command, at: number, code: Code | null): boolean {
  const decision = decide(state, command, at, code)
  if ('refusal' in decision) return false
  return decision.state.aborting.size > state.aborting.size || decision.state.running < state.running - 1
}

function sameEvents(state: State, a: Command, b: Command, at: number, code: Code | null): boolean {
  const one = bothOf(state, a, b, at, code)
  const other = bothOf(state, b, a, at, code)
  return one === other
}

/** A command that is refused changes nothing; that it was refused is part of what happened. */
function bothOf(state: State, first: Command, second: Command, at: number, code: Code | null): string {
  const one = decide(state, first, at, code)
  const two = decide('refusal' in one ? state : one.state, second, at, code)
  const lines = [one, two].flatMap((made, index) =>
    'refusal' in made ? [`${(index === 0 ? first : second).type} ${made.refusal.code}`] : made.events.map(timeless),
  )
  return lines.sort().join('\n')
}

const timeless = (event: Event): string => JSON.stringify({ ...event, seq: 0, at: 0 })
