import type { Difference } from './difference.js'
import { differencesOf } from './difference.js'
import type { Class } from './outcome.js'
import { tokenOf } from './schedule.js'
import type { Divergence, Seen } from './search.js'
import type { Swap } from './swap.js'

/** Why two orders give two outcomes, told so that somebody can mend it. */
export interface Explained {
  readonly kind: Class
  readonly a: string
  readonly b: string
  readonly swap: readonly [string, string]
  readonly how: string
  readonly differences: readonly Difference[]
  readonly explain: string
}

const whatDiffers: Readonly<Record<Class, string>> = {
  'not-repeatable': 'The same came out differently when it was played again',
  ghost: 'Work went on after it had been told to stop',
  deadlock: 'The run came to a stand',
  invariant: 'A rule of the kernel was broken',
  endless: 'The run does not end',
  'effect-count': 'What is done outside of the run depends on the order',
  'effect-order': 'In which order one thing is changed depends on the order',
  status: 'Whether the run succeeds depends on the order',
  output: 'The output depends on the order',
  prompt: 'What an agent or a person is shown depends on the order',
  order: 'The same events come in another order',
}

/** What a class of difference means. */
export const meaningOf = (kind: Class): string => whatDiffers[kind]

export function explained({ kind, a, b }: Divergence, swap: Swap | null): Explained {
  const differences = differencesOf(kind, a.outcome, b.outcome)
  const [first, second] = [swap?.first.label ?? 'something', swap?.second.label ?? 'something else']
  const how = [howOf(swap, first, second), ...faultsIn(b)].join(' ')
  const lines = differences.map((difference) => `  ${difference.where}: ${difference.a}  |  ${difference.b}`)
  const tokens = [tokenOf(a.played.schedule), tokenOf(b.played.schedule)] as const
  const explain = [`${meaningOf(kind)}. ${how}`, `In the schedule ${tokens[0]}  |  in the schedule ${tokens[1]}:`, ...lines].join('\n')
  return { kind, a: tokens[0], b: tokens[1], swap: [first, second], how, differences, explain }
}

/** What went wrong in a schedule, and where. */
function faultsIn({ played }: Seen): string[] {
  return played.taken.flatMap(({ option, fault }) => {
    if (fault === null) return []
    return [`There, ${faultText[fault] ?? 'the agent is made to fail'} when "${option[0]?.label ?? ''}".`]
  })
}

const faultText: Readonly<Record<number, string>> = {
  0: 'the process crashes before it is recorded',
  1: 'the process crashes right after it is recorded',
  2: 'the acknowledgement of the store is lost',
  3: 'it comes twice',
}

function howOf(swap: Swap | null, first: string, second: string): string {
  if (swap === null) return 'No two things need to change places for it.'
  if (swap.how === 'together')
    return `It flips when "${first}" has come to rest before "${second}", instead of both at once: their code takes turns at every await, and they share something.`
  return `It flips when "${second}" comes before "${first}" instead of after it.`
}
