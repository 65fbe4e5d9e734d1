import { CodedFailure, failureOf } from '../define/failure-of.js'
import type { Approval } from '../kernel/action.js'
import type { ActivityOptions } from './activity-port.js'
import { isCoordination } from './coordination.js'
import { type Callable, callable } from './decision.js'
import type { ModelTurnPort } from './model-turn-port.js'
import type { Offers } from './offers.js'
import { type CallOutput, failedOutput, type OpenCall, type Transcript } from './transcript.js'
import { keys } from './turn-keys.js'

interface Ready {
  readonly index: number
  readonly tool: string
  /** Null: it was made before, and its tool is gone. */
  readonly call: Callable | null
}

/**
 * Calls the own tools that the last answer asks for, at the same time, and puts what came of them into the transcript in the order of the
 * calls. One that fails is for the model to deal with: the others go on, so that no order decides what was done. Gives the first call that a
 * person must approve before it is made.
 */
export async function callTools(
  port: ModelTurnPort,
  offers: Offers,
  transcript: Transcript,
  round: number | 'held',
): Promise<Approval | null> {
  const ready: Ready[] = []
  let approval: Approval | null = null
  for (const [index, open] of transcript.calls.entries()) {
    if (open.output !== null || isCoordination(open.tool)) continue
    const call = await callable(open, offers)
    if ('problem' in call && port.recorded(keys.tool(round, index))) ready.push({ index, tool: open.tool, call: null })
    else if ('problem' in call) transcript.settle(index, { type: 'error-text', value: call.problem })
    else if (await mustBeApproved(port, open, call, round === 'held' ? null : keys.approval(round, index)))
      approval ??= { tool: open.tool, input: call.given, call: index }
    else ready.push({ index, tool: open.tool, call })
  }
  const outputs = await Promise.all(ready.map((tool) => callTool(port, tool, round)))
  for (const [place, { index }] of ready.entries())
    transcript.settle(index, outputs[place] ?? failedOutput({ code: 'AGENT_FAILED', message: 'it gave nothing' }))
  return approval
}

/**
 * Whether a person must say yes first. A function is asked once, as an activity, in the turn of the answer (`key`); one that can't say counts as
 * yes. What was not called there had to be approved, and still has to be.
 */
async function mustBeApproved(port: ModelTurnPort, { approved, tool }: OpenCall, call: Callable, key: string | null): Promise<boolean> {
  const { needsApproval } = call.definition
  if (approved || needsApproval === undefined) return false
  if (typeof needsApproval === 'boolean') return needsApproval
  if (key === null) return true
  try {
    const said = await port.activity(`${tool}.needsApproval`, async () => (await needsApproval(call.input)) !== false, { key })
    return said !== false
  } catch (error) {
    throwIfOver(port, error)
    return true
  }
}

async function callTool(port: ModelTurnPort, { index, tool, call }: Ready, round: number | 'held'): Promise<CallOutput> {
  try {
    const value = await port.activity(tool, (ctx) => call?.definition.run(call.input, ctx), {
      key: keys.tool(round, index),
      ...(call !== null && optionsOf(tool, call)),
    })
    return { type: 'json', value: value ?? null }
  } catch (error) {
    throwIfOver(port, error)
    return failedOutput(failureOf(error))
  }
}

function optionsOf(tool: string, { definition, input }: Callable): ActivityOptions {
  const { idempotent, timeoutMs, compensate } = definition
  return {
    ...(idempotent !== undefined && { idempotent }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(compensate !== undefined && { undo: { tool, input } }),
  }
}

/** An activity that failed is told to the model; a turn that is over is over. */
export function throwIfOver({ turn }: ModelTurnPort, error: unknown): void {
  if (turn.signal.aborted || (error instanceof CodedFailure && error.failure.code === 'NONDETERMINISTIC_TURN')) throw error
}
