import { CodedFailure } from '../define/failure-of.js'
import type { Action, Approval } from '../kernel/action.js'
import { isCoordination } from './coordination.js'
import { decisionOf } from './decision.js'
import { ModelCalls } from './model-calls.js'
import type { ModelTurnPort } from './model-turn-port.js'
import { offersOf } from './offers.js'
import { systemPrompt } from './prompt.js'
import { callTools } from './tool-calls.js'
import { transcriptOf } from './transcript.js'
import { keys } from './turn-keys.js'

/** What the turn of a model comes to: it acts, a person must approve a call first, or it is sent back. */
export type ModelOutcome = { readonly action: Action } | { readonly approval: Approval } | { readonly problem: string }

/** How often a model may be asked in one turn: whoever calls tools for longer than this is going round in circles. */
const roundsMax = 100

/**
 * One turn of a model agent: the model is asked, its tools are called, and it is asked again with what they gave, until it acts.
 *
 * 1. Models, tools and guardrails are called as activities, and nothing else is done here that could differ on re-execution.
 * 2. No tool starts before every guardrail has let the answer through that asked for it.
 */
export async function modelTurn(port: ModelTurnPort): Promise<ModelOutcome> {
  const { seat, said, memory, message, turn } = port
  const offers = offersOf(seat, await port.tools())
  const transcript = transcriptOf(said, memory.turns)
  transcript.hear(message)
  const calls = new ModelCalls(port, offers, await systemPrompt(offers, turn))
  // A person has answered: the calls of the last answer that were waiting for that go on.
  if (transcript.calls.some(({ tool, output }) => output === null && !isCoordination(tool))) {
    const approval = await callTools(port, offers, transcript, 'held')
    if (approval !== null) return { approval }
  }
  for (let round = 0; round < roundsMax; round++) {
    const answer = await calls.next(transcript)
    transcript.say(answer)
    const decision = await decisionOf(answer, transcript.calls, offers, (index) => port.recorded(keys.tool(round, index)))
    switch (decision.kind) {
      case 'act':
        return { action: decision.action }
      case 'reject':
        return { problem: decision.problem }
      case 'tools': {
        const approval = await callTools(port, offers, transcript, round)
        if (approval !== null) return { approval }
      }
    }
  }
  const text = `${seat.agent.name} has called tools ${roundsMax} times in one turn and has not acted`
  throw new CodedFailure({ code: 'AGENT_FAILED', message: text, retryable: false, at: {} })
}
