import type { Command } from '../../src/kernel/command.js'
import type { Decision } from '../../src/kernel/decide.js'
import { DecisionSeries } from '../../src/kernel/decision-series.js'
import type { Code } from '../../src/kernel/shape.js'
import type { State } from '../../src/kernel/state.js'

/** Decides a command as an engine does: in a series, which has short ways of its own for what comes by the thousand. */
export function inSeries(state: State, command: Command, at: number, code: Code | null): Decision {
  const series = new DecisionSeries(state, at, code)
  const decided = series.decide(command)
  return 'refusal' in decided ? decided : { events: decided.events, state: series.made().state }
}
