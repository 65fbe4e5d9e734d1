import { type Checked, checkedJson } from '../define/check-schema.js'
import { jsonSchemaOf } from '../define/json-schema.js'
import { jsonSchemaProblem } from '../define/json-schema-check.js'
import type { Schema } from '../define/schema.js'
import type { OpenAsk } from '../kernel/state.js'
import type { RunEntry } from './run-entry.js'

/**
 * What an answer comes to, or what is against it. Where the schema itself is at hand, it decides. Where it is not (another process, or this one
 * after a restart), the answer is held to what the ask has kept of it as JSON Schema.
 */
export async function checkAnswer(entry: RunEntry, askId: string, given: Checked): Promise<Checked> {
  const answer = await answerOf(entry, entry.state.asks.get(askId), given)
  // Whoever is asked is told something: nothing at all would have to be made null.
  return 'problem' in answer || answer.value !== undefined ? answer : { problem: 'the answer is undefined, which is no JSON; null is' }
}

async function answerOf(entry: RunEntry, ask: OpenAsk | undefined, given: Checked): Promise<Checked> {
  if ('problem' in given || ask?.kind !== 'question') return given
  const schema = schemaOf(entry, ask)
  const answer = await checkedJson(schema, given.value, 'the answer')
  if ('problem' in answer || schema !== undefined) return answer
  const problem = jsonSchemaProblem(ask.schema, answer.value ?? null, 'the answer')
  return problem === null ? answer : { problem }
}

/** What the ask itself said, if this process still has it, else what its agent's `answer` says, if it is by that that it asked. */
function schemaOf({ askSchemas, definition }: RunEntry, ask: Extract<OpenAsk, { kind: 'question' }>): Schema | undefined {
  if (definition === null) return undefined
  if (definition.kind === 'graph') {
    const step = definition.steps[ask.agent]
    return step?.kind === 'ask' ? step.schema : undefined
  }
  const own = askSchemas.get(ask.branch)
  if (own !== undefined) return own
  const answer = definition.agents[ask.agent]?.answer
  return JSON.stringify(jsonSchemaOf(answer)) === JSON.stringify(ask.schema) ? answer : undefined
}
