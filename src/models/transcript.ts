import type { Failure } from '../kernel/failure.js'
import { sameJson } from '../kernel/json.js'
import type { PastTurn } from '../kernel/memory.js'
import type { TurnMessage } from '../kernel/message.js'
import type { ActivityRecord, Said } from '../kernel/state.js'
import { coordination, isCoordination } from './coordination.js'
import { joinOutputs } from './join-output.js'
import { type ModelAnswer, textOf } from './model-answer.js'
import { asArguments } from './tool-arguments.js'
import { type ToolInput, toolInput } from './tool-input.js'
import { retold } from './turn-keys.js'
import { valueText } from './value-text.js'

/** What came of a call, as every provider takes it. */
export type CallOutput =
  | { readonly type: 'text' | 'error-text'; readonly value: string }
  | { readonly type: 'json'; readonly value: unknown }

interface ResultPart {
  readonly type: 'tool-result'
  readonly toolCallId: string
  readonly toolName: string
  readonly output: CallOutput
}

interface Part {
  readonly type: string
  readonly [key: string]: unknown
}

/** One message of a prompt. */
export type PromptMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: readonly { readonly type: 'text'; readonly text: string }[] }
  | { readonly role: 'assistant'; readonly content: readonly Part[] }
  | { readonly role: 'tool'; readonly content: readonly ResultPart[] }

/** A call of the last answer, with what came of it so far. */
export interface OpenCall {
  readonly id: string
  readonly tool: string
  readonly input: ToolInput
  /** A person has said that exactly this call may be made. */
  readonly approved: boolean
  readonly output: CallOutput | null
}

const text = (value: string): CallOutput => ({ type: 'text', value })
const error = (value: string): CallOutput => ({ type: 'error-text', value })

/** What all providers take as the name of a tool and as the id of a call. */
const nameFit = /^[A-Za-z0-9_-]{1,64}$/

/**
 * The transcript of a model agent, from what its journal has of it.
 *
 * 1. Every call of an answer has exactly one result, in the order of the calls and right after it, whatever became of the turn.
 * 2. No two calls have the same id, and names are such that every provider takes them.
 * 3. It is a function of what it was told: the same on every execution.
 */
export class Transcript {
  #messages: PromptMessage[] = []
  #calls: OpenCall[] = []
  readonly #ids = new Set<string>()
  /** What the agent was last asked: it stays when the rest is summed up. */
  #request = ''

  /** The calls of the last answer, until the next message or answer. */
  get calls(): readonly OpenCall[] {
    return this.#calls
  }

  /** All of it. Calls that have no result yet are given one. */
  get messages(): readonly PromptMessage[] {
    this.#close()
    return this.#messages
  }

  /** What the agent was last asked. */
  get request(): string {
    return this.#request
  }

  /** What was said in the session before. */
  recall(said: readonly Said[]): void {
    for (const { input, output } of said) {
      this.#user(valueText(input))
      this.#messages.push({ role: 'assistant', content: [{ type: 'text', text: words(valueText(output)) }] })
    }
  }

  /** Why a turn happens: a new request, or what came of the calls of the last answer. */
  hear(message: TurnMessage): void {
    switch (message.kind) {
      case 'request':
        return this.#ask(valueText(message.value))
      case 'merged':
        return this.#ask(message.requests.map(({ from, value }) => `From ${from}:\n${valueText(value)}`).join('\n\n'))
      case 'join': {
        const invoking = this.#waiting((call) => call.tool === coordination.invoke)
        const outputs = joinOutputs(
          message.join,
          invoking.map((index) => invocations(this.#calls[index]?.input)),
        )
        if (invoking.length === 0) return this.#tell(`What came of it: ${JSON.stringify(outputs[0]?.value)}`)
        return invoking.forEach((index, place) => this.settle(index, outputs[place] ?? text('done')))
      }
      case 'answer':
        return this.#answered(message.question, message.value)
      case 'expired':
        return this.#resolve(coordination.ask, error('nobody answered in time'), 'Nobody answered in time.')
      case 'feedback': {
        const refused = this.#waiting(() => true)
        if (refused.length === 0) return this.#tell(`That was not accepted: ${message.problem}`)
        return refused.forEach((index) => this.settle(index, error(message.problem)))
      }
    }
  }

  /** What a model answered. */
  say({ parts }: ModelAnswer): void {
    // It was asked again in the same turn: what was not called could not be.
    this.#close('not done: there is no such tool, or it does not take these arguments')
    const content: Part[] = []
    const calls: OpenCall[] = []
    for (const part of parts) {
      const meta = part.meta === undefined ? {} : { providerOptions: part.meta }
      switch (part.type) {
        case 'text':
          // A provider that marks its texts knows an empty one again.
          if (part.text.trim() !== '' || part.meta !== undefined) content.push({ type: 'text', text: part.text, ...meta })
          break
        case 'reasoning':
          // Marked or not: DeepSeek, Kimi and others refuse a call that is told without the thoughts before it.
          content.push({ type: 'reasoning', text: part.text, ...meta })
          break
        case 'call': {
          const input = toolInput(part.input)
          const id = this.#idFor(part.id)
          const given = 'value' in input ? asArguments(input.value) : {}
          content.push({ type: 'tool-call', toolCallId: id, toolName: shownName(part.tool), input: given, ...meta })
          calls.push({ id, tool: part.tool, input, approved: false, output: null })
        }
      }
    }
    // A thought that led to nothing, as where the answer was cut off in it, no provider takes back.
    while (content.at(-1)?.type === 'reasoning') content.pop()
    if (content.length > 0) this.#messages.push({ role: 'assistant', content })
    this.#calls = calls
  }

  /** What came of one call of the last answer; the first that is said of it stands. */
  settle(index: number, output: CallOutput): void {
    const call = this.#calls[index]
    if (call?.output === null) this.#calls[index] = { ...call, output }
  }

  /**
   * A summary takes the place of all that was said; only the request stays as it was. An empty one, or what a filter has left of one, would be the
   * loss of everything; of one that was cut off it is said.
   */
  sumUp(answer: ModelAnswer): void {
    this.#close()
    const summary = textOf(answer)
    if (summary.trim() === '' || answer.finish === 'content-filter') return
    const end = answer.finish === 'length' ? '\n[the summary was cut off here]' : ''
    this.#messages = []
    this.#ids.clear()
    this.#user(`What happened so far, summed up:\n${summary}${end}\n\nWhat you were asked:\n${this.#request}`)
  }

  #ask(request: string): void {
    this.#close()
    this.#request = request
    this.#user(request)
  }

  #tell(what: string): void {
    this.#close()
    this.#user(what)
  }

  /** A person has answered: a question, or whether one of the calls may be made. */
  #answered(question: unknown, value: unknown): void {
    const asked = question as { readonly tool?: unknown; readonly input?: unknown; readonly call?: unknown } | null
    const index = typeof asked === 'object' && typeof asked?.call === 'number' ? asked.call : -1
    const call = this.#calls[index]
    const isApproval = call !== undefined && !isCoordination(call.tool) && call.tool === asked?.tool && call.output === null
    if (!isApproval) return this.#resolve(coordination.ask, answerOutput(value), `The answer: ${valueText(value)}`)
    const approved = value === true || (isRecord(value) && value['approved'] === true)
    // What was approved is this call with these arguments and no other.
    const same = 'value' in call.input && sameJson(call.input.value, asked.input)
    if (!approved) return this.settle(index, error(refusalText(value)))
    if (!same) return this.settle(index, error('not done: these are not the arguments that were approved'))
    this.#calls[index] = { ...call, approved: true }
  }

  #resolve(tool: string, output: CallOutput, otherwise: string): void {
    const waiting = this.#waiting((call) => call.tool === tool)
    if (waiting.length === 0) return this.#tell(otherwise)
    for (const index of waiting) this.settle(index, output)
  }

  #waiting(which: (call: OpenCall) => boolean): number[] {
    return this.#calls.flatMap((call, index) => (call.output === null && which(call) ? [index] : []))
  }

  /** Gives every call of the last answer its result; `uncalled` is that of a tool that was not called. */
  #close(uncalled = 'not done: the turn ended before it was called'): void {
    if (this.#calls.length === 0) return
    const beside = this.#calls.some(({ tool }) => !isCoordination(tool))
    const content = this.#calls.map(({ id, tool, output }): ResultPart => {
      const missing = !isCoordination(tool) ? error(uncalled) : beside ? error('not done: decide again with these results') : text('done')
      return { type: 'tool-result', toolCallId: id, toolName: shownName(tool), output: output ?? missing }
    })
    this.#messages.push({ role: 'tool', content })
    this.#calls = []
  }

  /** Two messages of a user in a row are one: not every provider takes two. */
  #user(said: string): void {
    const last = this.#messages.at(-1)
    const part = { type: 'text' as const, text: words(said) }
    if (last?.role === 'user') this.#messages[this.#messages.length - 1] = { role: 'user', content: [...last.content, part] }
    else this.#messages.push({ role: 'user', content: [part] })
  }

  #idFor(given: string): string {
    const base = nameFit.test(given) ? given : 'call'
    let id = base
    for (let next = 2; this.#ids.has(id); next++) id = `${base.slice(0, 56)}_${next}`
    this.#ids.add(id)
    return id
  }
}

/** Not every provider takes a text in which there is nothing. */
const words = (said: string): string => (said.trim() === '' ? '(nothing)' : said)

/** The transcript of what an agent remembers. */
export function transcriptOf(said: readonly Said[], past: readonly PastTurn[]): Transcript {
  const transcript = new Transcript()
  transcript.recall(said)
  for (const { message, records } of past) {
    transcript.hear(message)
    for (const record of records) retell(transcript, record)
  }
  return transcript
}

function retell(transcript: Transcript, record: ActivityRecord): void {
  const what = retold(record.key)
  if (what === null) return
  if (what.kind === 'tool') return transcript.settle(what.index, outputOf(record))
  if (record.status !== 'completed') return
  if (what.kind === 'model') transcript.say(record.value as ModelAnswer)
  else transcript.sumUp(record.value as ModelAnswer)
}

/** What a model is told of a tool that failed. What may have been done must not be told as if it was not: it would be called again. */
export function failedOutput({ code, message }: Pick<Failure, 'code' | 'message'>): CallOutput {
  return error(`${code === 'ACTIVITY_OUTCOME_UNKNOWN' ? 'nobody knows whether it was done' : 'it failed'}: ${message}`)
}

/** What a recorded call of a tool came to. */
function outputOf(record: ActivityRecord): CallOutput {
  if (record.status === 'failed') return failedOutput(record.error)
  return record.status === 'completed' ? { type: 'json', value: record.value ?? null } : error('nobody knows whether it was done')
}

/** How many agents a call of `invoke_agent` named. */
function invocations(input: ToolInput | undefined): number {
  const list = input !== undefined && 'value' in input && isRecord(input.value) ? input.value['invocations'] : undefined
  return Array.isArray(list) ? list.length : 0
}

function answerOutput(value: unknown): CallOutput {
  return typeof value === 'string' ? text(value) : { type: 'json', value: value ?? null }
}

function refusalText(value: unknown): string {
  const reason = isRecord(value) && typeof value['reason'] === 'string' && value['reason'] !== '' ? `: ${value['reason']}` : ''
  return `not done: a person refused it${reason}`
}

const shownName = (tool: string): string => (nameFit.test(tool) ? tool : 'unknown_tool')

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
