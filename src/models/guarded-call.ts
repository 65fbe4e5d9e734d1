import { CodedFailure, failureOf } from '../define/failure-of.js'
import type { GuardedAnswer, Guardrail, Tripped } from '../define/guardrail.js'
import type { Maybe } from '../define/maybe.js'
import type { ActivityContext } from '../define/work.js'
import { deepFreeze } from '../kernel/deep-freeze.js'
import { type ModelAnswer, textOf } from './model-answer.js'
import type { ModelTurnPort } from './model-turn-port.js'
import { throwIfOver } from './tool-calls.js'
import { toolInput } from './tool-input.js'
import type { PromptMessage } from './transcript.js'
import { keys } from './turn-keys.js'

/** A call of a model that is given up when the signal is aborted, if there is one. */
export type GuardedCall = (stop: AbortSignal | null) => Promise<ModelAnswer>

type Look = (guardrail: Guardrail, ctx: ActivityContext) => Maybe<Tripped>

/**
 * Calls a model between its guardrails. One that trips decides, whatever the model came to and whoever was first: so those beside the call are
 * always heard to their end, and the call is given up as soon as one of them trips.
 */
export async function guarded(
  port: ModelTurnPort,
  number: number,
  messages: readonly PromptMessage[],
  call: GuardedCall,
): Promise<ModelAnswer> {
  const guardrails = port.seat.agent.options.guardrails ?? []
  if (guardrails.length === 0) return call(null)
  const shown = Object.freeze({ messages })
  const before: Look = (guardrail, ctx) => guardrail.before?.(shown, ctx)
  const look = (which: (guardrail: Guardrail) => boolean, when: 'before' | 'after', how: Look): Promise<CodedFailure | null>[] =>
    guardrails.flatMap((guardrail, index) =>
      which(guardrail) ? [tripped(port, guardrail, keys.guard(when, number, index), (ctx) => how(guardrail, ctx))] : [],
    )
  throwFirst(await Promise.all(look((guardrail) => guardrail.before !== undefined && guardrail.parallel !== true, 'before', before)))
  const stop = new AbortController()
  const beside = look((guardrail) => guardrail.before !== undefined && guardrail.parallel === true, 'before', before).map(
    async (looking) => {
      const failure = await looking
      if (failure !== null) stop.abort(failure)
      return failure
    },
  )
  const [answered] = await Promise.allSettled([call(stop.signal), ...beside])
  throwFirst(await Promise.all(beside))
  if (answered.status === 'rejected') throw answered.reason
  const answer = answered.value
  const after: Look = (guardrail, ctx) => guardrail.after?.(shownAnswer(answer), ctx)
  throwFirst(await Promise.all(look((guardrail) => guardrail.after !== undefined, 'after', after)))
  return answer
}

/** What a guardrail has against it; null if nothing. One that throws has tripped: nobody knows what it would have said. */
async function tripped(
  port: ModelTurnPort,
  { name }: Guardrail,
  key: string,
  look: (ctx: ActivityContext) => Maybe<Tripped>,
): Promise<CodedFailure | null> {
  try {
    const said = await port.activity(name, async (ctx) => (await look(ctx)) ?? null, { key })
    if (said === null || said === undefined || said === false || said === '') return null
    return stopped(name, typeof said === 'string' ? said : 'it did not say why')
  } catch (error) {
    throwIfOver(port, error)
    return stopped(name, failureOf(error).message)
  }
}

function stopped(name: string, reason: string): CodedFailure {
  return new CodedFailure({
    code: 'AGENT_FAILED',
    message: `the guardrail ${name} stopped the turn: ${reason}`,
    retryable: false,
    data: { code: 'GUARDRAIL_TRIPPED', guardrail: name, reason },
    at: {},
  })
}

/** The first in declared order, not the first in time. */
function throwFirst(failures: readonly (CodedFailure | null)[]): void {
  for (const failure of failures) if (failure !== null) throw failure
}

function shownAnswer(answer: ModelAnswer): GuardedAnswer {
  const calls = answer.parts.flatMap((part) => {
    if (part.type !== 'call') return []
    const input = toolInput(part.input)
    return [{ tool: part.tool, input: 'value' in input ? input.value : part.input }]
  })
  return deepFreeze({ text: textOf(answer), calls })
}
