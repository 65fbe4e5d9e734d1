import type { LanguageModelV3CallOptions } from '@ai-sdk/provider'
import { atOnce } from '../define/at-once.js'
import type { Topology } from '../define/definition.js'
import { aRecord, shown } from '../define/option-check.js'
import { toJson } from '../kernel/json.js'
import { placeOf } from './call-place.js'
import { coordination } from './coordination.js'
import { invokeForms } from './invoke-forms.js'
import type { ModelFactory } from './model-factory.js'
import { playingModel, type Said } from './playing-model.js'
import { ScriptedFailure } from './scripted-failure.js'

/** One reply of a scripted model. */
export type ScriptedReply<N extends string = string> =
  | string
  | { text: string }
  | { finish: unknown }
  | { ask: unknown }
  | { reply: unknown }
  | { invoke: N; request?: unknown }
  | { fork: readonly { to: N; request?: unknown }[] }
  | { tool: string; input: unknown }
  | { error: { status: number; retryAfterMs?: number } }

/** The names of a topology's agents. */
export type AgentNames<D> = D extends Topology<never, unknown, infer N> ? N : string

type Replies = readonly ScriptedReply[] | ((call: { request: unknown; branch: string; turn: number; call: number }) => ScriptedReply)

/** Exact replies per agent. A list is played from its start on every branch, so that no order can change who says what. */
export function script<D extends Topology<never, unknown, string> = Topology>(
  replies: {
    readonly [K in AgentNames<D>]?: Replies
  },
): ModelFactory {
  const known = replies as Readonly<Record<string, Replies | undefined>>
  checkReplies(known)
  return ({ agent }) => {
    const scripted = Object.hasOwn(known, agent) ? known[agent] : undefined
    if (scripted === undefined) return undefined
    return playingModel('tutti', 'script', (options) => said(replyTo(agent, scripted, options), options))
  }
}

function replyTo(agent: string, scripted: Replies, options: LanguageModelV3CallOptions): ScriptedReply {
  const place = placeOf(options)
  const index = place?.index ?? options.prompt.filter(({ role }) => role === 'assistant').length
  const { request, branch = 'r', turn = 1, call = index } = place ?? {}
  const whose = `the script of ${agent}`
  if (typeof scripted === 'function') return checkReply(atOnce(scripted, whose)(Object.freeze({ request, branch, turn, call })), whose)
  const reply = scripted[index]
  if (reply === undefined)
    throw new Error(`${whose} has ${scripted.length} replies, and its branch ${branch} wants another in turn ${turn}`)
  return reply
}

const companions: Readonly<Record<string, string | null>> = {
  text: null,
  finish: null,
  ask: null,
  reply: null,
  invoke: 'request',
  fork: null,
  tool: 'input',
  error: null,
}

/** A script with a mistake in it is refused where it is written, and not where it is played. */
function checkReplies(given: Readonly<Record<string, unknown>>): void {
  if (!aRecord.is(given))
    throw new TypeError(`script() takes the replies of each agent: script({ Writer: ['hello'] }), not ${shown(given)}`)
  for (const [agent, replies] of Object.entries(given)) {
    if (Array.isArray(replies)) replies.forEach((reply, index) => checkReply(reply, `the script of ${agent}, reply ${index}`))
    else if (replies !== undefined && typeof replies !== 'function')
      throw new TypeError(`the script of ${agent} is a list of replies or a function that gives one, not ${shown(replies)}`)
  }
}

/** One thing is said at a time, and nothing that would be passed over or changed. */
function checkReply(reply: unknown, whose: string): ScriptedReply {
  if (typeof reply === 'string') return reply
  const keys = aRecord.is(reply) ? Object.keys(reply as object) : []
  const kind = keys.find((key) => Object.hasOwn(companions, key))
  if (kind === undefined || keys.some((key) => key !== kind && key !== companions[kind])) {
    const said = keys.length === 0 ? shown(reply) : `{ ${keys.join(', ')} }`
    throw new TypeError(`${whose}: a scripted reply is a text, or has one of: ${Object.keys(companions).join(', ')}; not ${said}`)
  }
  const json = toJson(reply)
  if ('problem' in json) throw new TypeError(`${whose}: it is no JSON at ${json.path}: ${json.problem}`)
  return reply as ScriptedReply
}

function said(reply: ScriptedReply, options: LanguageModelV3CallOptions): Said {
  if (typeof reply === 'string') return { text: reply }
  if ('text' in reply) return { text: reply.text }
  if ('finish' in reply) return call(coordination.finish, { output: reply.finish })
  if ('ask' in reply) return call(coordination.ask, { question: reply.ask })
  if ('reply' in reply) return replied(reply.reply, options)
  if ('invoke' in reply) return invoked([{ to: reply.invoke, request: reply.request }])
  if ('fork' in reply) return invoked(reply.fork, { fork: true })
  if ('tool' in reply) return call(reply.tool, reply.input)
  throw new ScriptedFailure(reply.error)
}

const call = (name: string, input: unknown): Said => ({ calls: [{ name, input }] })

/** A text is said as models reply, in prose; other values go where prose would, as they are: to who waits, else to the end of the run. */
function replied(value: unknown, options: LanguageModelV3CallOptions): Said {
  if (typeof value === 'string') return { text: value }
  const waiting = placeOf(options)?.waiting
  // Who waits may be out of reach: then prose would be the end as well. Whoever calls it outside of a run offers nothing.
  const isReached =
    typeof waiting === 'string' && (options.tools === undefined || invokeForms(options.tools).some(({ names }) => names.includes(waiting)))
  return isReached ? invoked([{ to: waiting, request: value }]) : call(coordination.finish, { output: value })
}

function invoked(calls: readonly { to: string; request?: unknown }[], how: { readonly fork?: true } = {}): Said {
  return call(coordination.invoke, { ...how, invocations: calls.map(({ to, request }) => ({ agent_name: to, request })) })
}
