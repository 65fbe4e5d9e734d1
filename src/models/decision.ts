import { checked } from '../define/check-schema.js'
import { jsonSchemaOf } from '../define/json-schema.js'
import type { Schema } from '../define/schema.js'
import type { ToolDefinition } from '../define/tool.js'
import type { Action } from '../kernel/action.js'
import { coordination, isCoordination } from './coordination.js'
import { type ModelAnswer, textOf } from './model-answer.js'
import { allowedText, type Offers } from './offers.js'
import { isText } from './prompt.js'
import { inputIn } from './tool-arguments.js'
import type { OpenCall } from './transcript.js'

/** What an answer of a model comes to: its own tools are to be called, it acts, or it is sent back. */
export type ModelDecision =
  | { readonly kind: 'tools' }
  | { readonly kind: 'act'; readonly action: Action }
  | { readonly kind: 'reject'; readonly problem: string }

/** How many calls of its own tools one answer may have. */
const callsMax = 128

/** An answer with such an end is not all of it, though what there is may look whole, its last call too: nothing of it is done. */
const halves: Readonly<Record<string, string | undefined>> = {
  length: 'the answer was cut off at the limit of its length, so nothing of it was done: say it shorter, or in several steps',
  'content-filter': 'the filter of the provider stopped the answer, so nothing of it was done: say it in another way',
}

const act = (action: Action): ModelDecision => ({ kind: 'act', action })

/**
 * Decides what an answer comes to. What is allowed is judged again by the kernel; this is what the model is told. A call that was made before
 * (`made`, by its place) was one that could be, though its tool may be gone now.
 */
export async function decisionOf(
  answer: ModelAnswer,
  calls: readonly OpenCall[],
  offers: Offers,
  made: (index: number) => boolean,
): Promise<ModelDecision> {
  const reject = (problem: string): ModelDecision => ({ kind: 'reject', problem: `${problem}. ${allowedText(offers)}` })
  const wasMade = calls.some((_, index) => made(index))
  const half = halves[answer.finish]
  if (half !== undefined && !wasMade) return reject(half)
  const own = calls.filter(({ tool }) => !isCoordination(tool))
  if (own.length > callsMax) return reject(`${own.length} calls of tools in one answer are too many: at most ${callsMax}`)
  if (own.length > 0) {
    const problems = (await Promise.all(own.map((call) => callable(call, offers)))).map((call) => ('problem' in call ? call.problem : null))
    // Tools are called if there is one that can be; an answer with none that can be is sent back.
    return problems.includes(null) || wasMade ? { kind: 'tools' } : reject(problems.join('; '))
  }
  const [first] = calls
  if (first === undefined) return prose(answer, offers, reject)
  const unread = calls.find(({ input }) => 'problem' in input)
  if (unread !== undefined && 'problem' in unread.input) return reject(`${unread.tool}: ${unread.input.problem}`)
  if (calls.every(({ tool }) => tool === coordination.invoke)) return invoked(calls, offers, reject)
  if (calls.length > 1)
    return reject(`${calls.map(({ tool }) => tool).join(' and ')} can't be done together, so none was: call one of them alone`)
  const given = argumentsOf(first)
  if (first.tool === coordination.finish) {
    if (!offers.mayFinish) return reject('there is no edge to End: the work can not be ended here')
    if (given === null || isMisnamed(given['output'], given)) return reject('finish takes { output }')
    return act({ type: 'finish', ...(given['output'] !== undefined && { output: given['output'] }) })
  }
  if (!offers.mayAsk) return reject('there is no edge to User: nobody can be asked here')
  if (given?.['question'] === undefined) return reject('ask_user takes { question }')
  return act({ type: 'ask', question: given['question'] })
}

type Reject = (problem: string) => ModelDecision

/** An own tool with an input that its schema takes; or why the call can't be made. */
export async function callable({ tool, input }: OpenCall, { own }: Offers): Promise<Callable | { readonly problem: string }> {
  const definition = own.get(tool)
  if (definition === undefined) return { problem: `there is no tool ${JSON.stringify(tool.slice(0, 80))}` }
  if ('problem' in input) return { problem: `${tool}: ${input.problem}` }
  const taken = await checked(definition.input, inputIn(definition.input, input.value), `the input of ${tool}`)
  return 'problem' in taken ? taken : { definition, input: taken.value, given: input.value }
}

/** `given` is what the model said, `input` what the tool's schema makes of it. */
export interface Callable {
  readonly definition: Readonly<ToolDefinition<any, unknown>>
  readonly input: unknown
  readonly given: unknown
}

function argumentsOf({ input }: OpenCall): Readonly<Record<string, unknown>> | null {
  const value = 'value' in input ? input.value : null
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, unknown>>) : null
}

/** What is given under another name than its own would be lost, and nobody told. Nothing at all may be meant so. */
const isMisnamed = (value: unknown, others: object): boolean => value === undefined && Object.keys(others).length > 0

/** Several calls are one fork, in the order of the calls; one invocation in all is an invoke, unless it is said to be a fork. */
function invoked(calls: readonly OpenCall[], { agents }: Offers, reject: Reject): ModelDecision {
  const wanted: { to: string; request?: unknown }[] = []
  const isFork = calls.some((call) => argumentsOf(call)?.['fork'] === true)
  for (const call of calls) {
    const list = argumentsOf(call)?.['invocations']
    if (!Array.isArray(list) || (list.length === 0 && !isFork))
      return reject('invoke_agent takes { invocations: [{ agent_name, request }] }, at least one')
    for (const item of list as readonly unknown[]) {
      const { agent_name: to, request, ...others } = (item ?? {}) as { readonly agent_name?: unknown; readonly request?: unknown }
      if (typeof to !== 'string') return reject('each invocation needs an agent_name')
      if (!agents.includes(to)) return reject(`there is no edge to ${JSON.stringify(to.slice(0, 80))}`)
      if (isMisnamed(request, others)) return reject('each invocation is { agent_name, request }')
      wanted.push({ to, ...(request !== undefined && { request }) })
    }
  }
  const [only] = wanted
  return act(wanted.length === 1 && only !== undefined && !isFork ? { type: 'invoke', ...only } : { type: 'fork', calls: wanted })
}

/** Prose with no call: a reply if somebody waits and the edge is there, else the end of the run if it may be ended, else sent back. */
async function prose(answer: ModelAnswer, { prose: way, proseSchema }: Offers, reject: Reject): Promise<ModelDecision> {
  const text = textOf(answer)
  if (text.trim() === '') return reject(`the answer is empty (${answer.finish})`)
  if (way === null) return reject('text alone does nothing here')
  const value = proseSchema === undefined ? text : await meant(proseSchema, text)
  return act(way === 'reply' ? { type: 'reply', value } : { type: 'finish', output: value })
}

/**
 * Text for a schema: in the form that the model was told first, as it is or as the JSON that it is or holds in a fence, and in the other one if
 * the schema takes only that. If it takes neither, then it says what is wrong with the JSON.
 */
async function meant(schema: Schema, text: string): Promise<unknown> {
  const json = jsonSchemaOf(schema)
  const inside = jsonIn(text)
  const forms = [text, ...inside]
  if (json !== undefined && !isText(json)) forms.reverse()
  for (const form of forms) if ('value' in (await checked(schema, form, 'the text'))) return form
  return inside.length > 0 ? inside[0] : text
}

/** The JSON that a text is; nothing if it is none. */
function jsonIn(text: string): unknown[] {
  try {
    return [JSON.parse(/^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text)?.[1] ?? text)]
  } catch {
    return []
  }
}
