import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { transcriptProblem, type WireRequest } from './openai-transcript.js'

/** What the server says to one request. */
export type Answer =
  | string
  | {
      readonly text?: string
      readonly thought?: string
      readonly calls?: readonly Call[]
      readonly usage?: Usage
      readonly finish?: 'length' | 'content_filter'
    }
  | { readonly status: number; readonly message?: string; readonly retryAfterMs?: number }
  /** The connection is cut before a byte of the answer, or in the middle of this one. */
  | { readonly cut: 'before' }
  | { readonly cut: 'middle'; readonly text: string }
  /** Nothing more comes until the client goes away: from the beginning, or in the middle of this answer. */
  | { readonly hang: 'before' }
  | { readonly hang: 'middle'; readonly text: string }
  /** A text that has no end, with this status. */
  | { readonly endless: number }
  /** Exactly this, with a status that says that all is well. */
  | { readonly raw: string }

/** A tool call. Text as input is sent as it is, so that it can be no JSON. */
export interface Call {
  readonly name: string
  readonly input: unknown
  readonly id?: string
}

export interface Usage {
  readonly input: number
  readonly output: number
  /** As OpenRouter reports it. */
  readonly cost?: number
}

/** A request that came in; `n` counts them from 0. */
export interface Received {
  readonly n: number
  readonly body: WireRequest
  readonly headers: IncomingHttpHeaders
  /** Resolves when the client has gone away without waiting for the end of the answer. */
  readonly aborted: Promise<void>
}

/** A request whose answer waits for the test. */
export interface Held extends Received {
  release(answer?: Answer): void
}

/**
 * A real HTTP server on loopback that speaks /chat/completions, streaming and not. What it says is a function of the request. Every stream
 * is written in pieces that split events, tool calls and characters; a transcript that OpenAI would refuse is refused with a 400.
 */
export class OpenAiServer implements AsyncDisposable {
  readonly requests: Received[] = []
  /** Answers that were given to the end. */
  readonly answered: Received[] = []
  readonly #play: (request: Received) => Answer | Promise<Answer>
  readonly #server: Server
  readonly #held: Held[] = []
  readonly #watchers: (() => void)[] = []
  #holding = false

  private constructor(play: (request: Received) => Answer | Promise<Answer>) {
    this.#play = play
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy())
    })
  }

  static async start(play: (request: Received) => Answer | Promise<Answer>): Promise<OpenAiServer> {
    const made = new OpenAiServer(play)
    await new Promise<void>((resolve) => made.#server.listen(0, '127.0.0.1', resolve))
    return made
  }

  /** The base URL, as providers take it. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  /** From now on every answer waits until it is released, so that the test says in which order they are complete. */
  hold(): void {
    this.#holding = true
  }

  /** The held requests, as soon as there are `count` that were not released, in the order of their coming. */
  async held(count: number): Promise<Held[]> {
    await this.#until(() => this.#held.length >= count)
    return [...this.#held]
  }

  /** Resolves when so many answers were given to the end. */
  async done(count: number): Promise<void> {
    await this.#until(() => this.answered.length >= count)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #until(reached: () => boolean): Promise<void> {
    while (!reached()) await new Promise<void>((resolve) => this.#watchers.push(resolve))
  }

  #changed(): void {
    for (const wake of this.#watchers.splice(0)) wake()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST' || request.url !== '/v1/chat/completions') {
      response.writeHead(404).end()
      return
    }
    const body = await bodyOf(request)
    const aborted = new Promise<void>((resolve) => response.once('close', () => (response.writableFinished ? undefined : resolve())))
    const received: Received = Object.freeze({ n: this.requests.length, body, headers: request.headers, aborted })
    this.requests.push(received)
    const problem = transcriptProblem(body)
    const answer = problem === undefined ? await this.#answerTo(received) : { status: 400, message: problem }
    await say(answer, received, response)
    if (response.writableFinished) this.answered.push(received)
    this.#changed()
  }

  async #answerTo(received: Received): Promise<Answer> {
    const answer = await this.#play(received)
    if (!this.#holding) return answer
    return new Promise((resolve) => {
      const held: Held = {
        ...received,
        release: (other) => {
          this.#held.splice(this.#held.indexOf(held), 1)
          resolve(other ?? answer)
        },
      }
      this.#held.push(held)
      this.#changed()
    })
  }
}

async function bodyOf(request: IncomingMessage): Promise<WireRequest> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return JSON.parse(Buffer.concat(parts).toString('utf8')) as WireRequest
}

async function say(answer: Answer, received: Received, response: ServerResponse): Promise<void> {
  if (typeof answer === 'string') return sayWell({ text: answer }, received, response)
  if ('status' in answer) return refuse(answer, response)
  if ('cut' in answer) {
    if (answer.cut === 'middle') await half(answer.text, received, response)
    response.destroy()
    return
  }
  if ('hang' in answer) {
    if (answer.hang === 'middle') await half(answer.text, received, response)
    return received.aborted
  }
  if ('endless' in answer) {
    response.writeHead(answer.endless, { 'content-type': received.body.stream === true ? 'text/event-stream' : 'application/json' })
    await write(response, Buffer.from('data: {"choices": [{"message": {"content": "'))
    // Node 26 says at once that a write to a socket that is gone is done, and has no time then to say that it is gone.
    for (const more = Buffer.alloc(1_000_000, 'x'); response.socket?.destroyed === false; ) await write(response, more)
    return
  }
  if ('raw' in answer) {
    response.writeHead(200, { 'content-type': received.body.stream === true ? 'text/event-stream' : 'application/json' })
    return end(response, [Buffer.from(answer.raw)])
  }
  return sayWell(answer, received, response)
}

function refuse(
  { status, message, retryAfterMs }: { status: number; message?: string; retryAfterMs?: number },
  response: ServerResponse,
): Promise<void> {
  const wait =
    retryAfterMs === undefined ? {} : { 'retry-after-ms': String(retryAfterMs), 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) }
  response.writeHead(status, { 'content-type': 'application/json', ...wait })
  return end(response, [Buffer.from(JSON.stringify({ error: { message: message ?? `status ${status}`, type: 'scripted', code: null } }))])
}

type Said = Exclude<Answer, string | { status: number } | { cut: string } | { hang: string } | { endless: number } | { raw: string }>

async function sayWell(answer: Said, { body, n }: Received, response: ServerResponse): Promise<void> {
  if (body.stream === true) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    return end(response, pieces(streamOf(answer, body, n)))
  }
  response.writeHead(200, { 'content-type': 'application/json' })
  return end(response, pieces(JSON.stringify(completionOf(answer, body, n))))
}

/** The first half of an answer of this text; what is missing is announced, so that the client can't take it for the whole. */
async function half(text: string, { body, n }: Received, response: ServerResponse): Promise<void> {
  const streamed = body.stream === true
  const whole = Buffer.from(streamed ? streamOf({ text }, body, n) : JSON.stringify(completionOf({ text }, body, n)))
  response.writeHead(200, { 'content-type': streamed ? 'text/event-stream' : 'application/json', 'content-length': whole.length })
  await write(response, whole.subarray(0, whole.length / 2))
}

/** 61 is prime: the borders of the pieces fall everywhere, also into characters of several bytes. */
function pieces(text: string): Buffer[] {
  const whole = Buffer.from(text)
  const size = Math.max(61, Math.ceil(whole.length / 200))
  return Array.from({ length: Math.ceil(whole.length / size) }, (_, index) => whole.subarray(index * size, (index + 1) * size))
}

async function end(response: ServerResponse, parts: readonly Buffer[]): Promise<void> {
  for (const part of parts) await write(response, part)
  await new Promise<void>((resolve) => {
    response.once('close', resolve)
    response.end(resolve)
  })
}

function write(response: ServerResponse, part: Buffer): Promise<void> {
  return new Promise((resolve) => {
    response.once('close', resolve)
    response.write(part, () => {
      response.off('close', resolve)
      resolve()
    })
  })
}

const argumentsOf = (input: unknown) => (typeof input === 'string' ? input : JSON.stringify(input))
const idOf = (call: Call, n: number, index: number) => call.id ?? `call_${n}_${index}`
const finishOf = ({ finish, calls = [] }: Said) => finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')

function usageOf({ usage = { input: 10, output: 5 } }: Said): object {
  const { input, output, cost } = usage
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output, ...(cost === undefined ? {} : { cost }) }
}

function completionOf(answer: Said, body: WireRequest, n: number): object {
  const calls = (answer.calls ?? []).map((call, index) => ({
    id: idOf(call, n, index),
    type: 'function',
    function: { name: call.name, arguments: argumentsOf(call.input) },
  }))
  const thought = answer.thought === undefined ? {} : { reasoning_content: answer.thought }
  const message = { role: 'assistant', content: answer.text ?? null, ...thought, ...(calls.length > 0 ? { tool_calls: calls } : {}) }
  const choices = [{ index: 0, message, finish_reason: finishOf(answer) }]
  return { id: `chatcmpl-${n}`, object: 'chat.completion', created: 0, model: body.model, choices, usage: usageOf(answer) }
}

/** The events of a streamed answer: the text and each call's arguments in several deltas, the usage in the last chunk. */
function streamOf(answer: Said, body: WireRequest, n: number): string {
  const base = { id: `chatcmpl-${n}`, object: 'chat.completion.chunk', created: 0, model: body.model }
  const chunk = (delta: object, finish: string | null = null) => ({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] })
  const calls = (answer.calls ?? []).flatMap((call, index) => [
    chunk({ tool_calls: [{ index, id: idOf(call, n, index), type: 'function', function: { name: call.name, arguments: '' } }] }),
    ...split(argumentsOf(call.input)).map((part) => chunk({ tool_calls: [{ index, function: { arguments: part } }] })),
  ])
  const events = [
    chunk({ role: 'assistant', content: '' }),
    ...split(answer.thought ?? '').map((part) => chunk({ reasoning_content: part })),
    ...split(answer.text ?? '').map((content) => chunk({ content })),
    ...calls,
    chunk({}, finishOf(answer)),
    ...(body.stream_options?.include_usage === true ? [{ ...base, choices: [], usage: usageOf(answer) }] : []),
  ]
  return `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`
}

/** At least two parts of a text of two letters or more, at most twenty. */
function split(text: string): string[] {
  const letters = Array.from(text)
  const size = Math.max(1, Math.min(7, Math.ceil(letters.length / 2)), Math.ceil(letters.length / 20))
  return Array.from({ length: Math.ceil(letters.length / size) }, (_, index) => letters.slice(index * size, (index + 1) * size).join(''))
}
