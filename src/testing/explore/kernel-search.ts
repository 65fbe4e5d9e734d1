import type { Command } from '../../kernel/command.js'
import { decide } from '../../kernel/decide.js'
import type { Event } from '../../kernel/event.js'
import { compareIds } from '../../kernel/ids.js'
import type { Code } from '../../kernel/shape.js'
import type { Attempt, State } from '../../kernel/state.js'
import { attemptsOf, isOver } from '../../kernel/state.js'

/** A run on the bare kernel: what its turns come to is a pure function of where it stands. */
export interface KernelPlay {
  readonly code: Code | null
  /** What an attempt comes to; null: it hangs. */
  complete(state: State, attempt: Attempt): Command | null
  /** What else may happen here. */
  readonly others?: (state: State) => readonly Command[]
  /** The kernel; a broken one may be put in its place. */
  readonly decide?: typeof decide
}

/** One end of a run, and the way there. */
export interface KernelEnd {
  readonly state: State
  /** The events of all decisions on the way, each linked to what came before. */
  readonly path: Path | null
}

export interface Path {
  readonly before: Path | null
  readonly command: Command
  readonly events: readonly Event[]
}

export interface KernelSearched {
  readonly schedules: number
  readonly decisions: number
  /** Whether every order was played. */
  readonly exhaustive: boolean
}

/**
 * Every order of what is owed, depth first, on the kernel alone. States are persistent: a search branches from the state before, and no
 * prefix is ever played again.
 */
export function searchKernel(
  play: KernelPlay,
  from: State,
  visit: (end: KernelEnd) => void,
  schedulesMax: number = Number.POSITIVE_INFINITY,
): KernelSearched {
  const judge = play.decide ?? decide
  let schedules = 0
  let decisions = 0
  const stack: { readonly state: State; readonly path: Path | null }[] = [{ state: from, path: null }]
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const { state, path } = node
    if (isOver(state)) {
      schedules++
      visit(node)
      if (schedules >= schedulesMax && stack.length > 0) return { schedules, decisions, exhaustive: false }
      continue
    }
    let moved = false
    for (const command of commandsAt(play, state)) {
      const decision = judge(state, command, state.at, play.code)
      decisions++
      if ('refusal' in decision) continue
      moved = true
      stack.push({ state: decision.state, path: { before: path, command, events: decision.events } })
    }
    if (!moved) {
      schedules++
      visit(node)
    }
  }
  return { schedules, decisions, exhaustive: true }
}

/** What can happen next, the last first, so that the first is taken up first. */
function commandsAt(play: KernelPlay, state: State): Command[] {
  const commands: Command[] = [...(play.others?.(state) ?? [])].reverse()
  const turns = attemptsOf(state).sort((a, b) => compareIds(b.branch, a.branch))
  for (const attempt of turns) {
    const command = play.complete(state, attempt)
    if (command !== null) commands.push(command)
  }
  for (const { branch, agent, turn, attempt } of state.aborting.values())
    commands.push({ type: 'turn.settle', branch, agent, turn, attempt, how: 'ended' })
  return commands
}

/** The events of a way, from its start. */
export function journalOf(path: Path | null): Event[] {
  const parts: (readonly Event[])[] = []
  for (let at = path; at !== null; at = at.before) parts.push(at.events)
  return parts.reverse().flat()
}
