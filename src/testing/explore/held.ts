import type { Held } from '../../engine/seam.js'
import type { Command } from '../../kernel/command.js'
import { attemptId } from '../../kernel/ids.js'
import type { Happening } from './happening.js'
import { within } from './setting.js'

/** What an engine holds, as something that can happen; `own`: the run that is played. */
export function heldOf(
  what: Held,
  own: string,
  born: number,
  go: (instead?: Command) => void,
  isModel: (agent: string) => boolean,
): Happening {
  const { run } = what
  // Two child runs may have the same agents on the same branches: whose they are is said.
  const here = within(run.slice(own.length))
  if (what.type === 'start') {
    const { branch, turn, attempt, agent } = what.attempt
    const id = `start ${run} ${attemptId(branch, turn, attempt)}`
    return {
      id,
      lane: `${run} ${branch}`,
      kind: 'start',
      agent,
      label: `${agent} starts on ${here}${branch}`,
      born,
      runsCode: true,
      run,
      command: null,
      go,
    }
  }
  if (what.type === 'undo') {
    const { undo, agent } = what
    const id = `start ${run} undo ${undo.of}/${undo.attempt}`
    const label = `${agent} begins to undo ${here}${undo.of}`
    return { id, lane: `${run} undo ${undo.of}`, kind: 'start', agent, label, born, runsCode: true, run, command: null, go }
  }
  const { command } = what
  const told = toldOf(command, here)
  const speaker = 'branch' in command ? command : null
  const id = `${command.type} ${run} ${speaker === null ? told.of : attemptId(speaker.branch, speaker.turn, speaker.attempt)}${'key' in command ? ` ${command.key}` : ''}`
  const lane = 'of' in command ? `${run} undo ${command.of}` : `${run} ${speaker?.branch ?? branchOfTimer(told.of)}`
  const label = speaker === null ? told.label : `${speaker.agent} on ${here}${speaker.branch} ${told.label}`
  const agent = speaker?.agent ?? null
  const runsCode = told.runsCode && !(told.kind === 'activity' && agent !== null && run === own && isModel(agent))
  return { id, lane, kind: told.kind, agent, label, born, runsCode, run, command, go }
}

/** A timer's id begins with what it belongs to. */
const branchOfTimer = (timer: string): string => timer.split(/[#/: ]/)[0] ?? timer

interface Told {
  readonly kind: Happening['kind']
  readonly label: string
  readonly runsCode: boolean
  readonly of: string
}

function toldOf(command: Command, here: string): Told {
  switch (command.type) {
    case 'turn.complete':
      return { kind: 'end', label: actionLabel(command.action), runsCode: false, of: '' }
    case 'step.complete':
      return { kind: 'end', label: 'completes', runsCode: false, of: '' }
    case 'step.skip':
      return { kind: 'end', label: 'skips', runsCode: false, of: '' }
    case 'step.each':
      return { kind: 'end', label: 'lists its items', runsCode: false, of: '' }
    case 'turn.reject':
      return { kind: 'end', label: 'returns what can not be accepted', runsCode: false, of: '' }
    case 'turn.fail':
      return { kind: 'end', label: command.timedOut === true ? 'times out' : 'fails', runsCode: false, of: '' }
    case 'turn.settle':
      return { kind: 'settle', label: 'has stopped', runsCode: false, of: '' }
    case 'activity.start':
      return { kind: 'activity', label: `is to begin '${command.name}'`, runsCode: true, of: '' }
    case 'activity.complete':
      return { kind: 'activity', label: `has '${command.name}'`, runsCode: true, of: '' }
    case 'activity.fail':
      return { kind: 'activity', label: `fails at '${command.name}'`, runsCode: true, of: '' }
    case 'sleep.start':
      return { kind: 'activity', label: 'falls asleep', runsCode: false, of: '' }
    case 'undo.complete':
      return { kind: 'end', label: `${here}${command.of} is undone`, runsCode: false, of: `${command.of}/${command.attempt}` }
    case 'undo.fail':
      return { kind: 'end', label: `${here}${command.of} could not be undone`, runsCode: false, of: `${command.of}/${command.attempt}` }
    case 'timer.fire':
      return { kind: 'timer', label: `the timer ${here}${command.timer} rings`, runsCode: true, of: command.timer }
    default:
      return { kind: 'steering', label: command.type, runsCode: true, of: command.type }
  }
}

function actionLabel(action: { readonly type: string; readonly to?: unknown }): string {
  switch (action.type) {
    case 'invoke':
      return `invokes ${String(action.to)}`
    case 'fork':
      return 'forks'
    case 'reply':
      return 'replies'
    case 'finish':
      return 'finishes'
    case 'ask':
      return 'asks'
    default:
      return 'fails'
  }
}
