import { aNumber } from '../define/option-check.js'
import { TuttiError } from '../define/tutti-error.js'
import { deepFreeze } from '../kernel/deep-freeze.js'
import type { AgentCall } from '../kernel/lifecycle.js'
import { type AgentBody, agentKind, changedBy, decodeAgent, recordOf } from './agent-record.js'
import { notFound } from './agents.js'
import type { Engine } from './engine.js'
import { checkCommand, keyPut, rememberedUnder } from './keyed.js'
import type { AgentCommand, AgentControl, AgentRecord } from './tutti.js'
import { closedEngine } from './while-open.js'

/** The calls of people. */
type Call = Extract<AgentCall, 'pause' | 'resume' | 'start' | 'stop' | 'terminate'>

/** Steers agents for the user of an engine. */
export function agentControl(engine: Engine): AgentControl {
  const read = async (name: string): Promise<AgentBody> => {
    const found = isName(name) ? await engine.options.store.record(agentKind, name) : null
    if (found === null) throw notFound(name)
    return decodeAgent(name, found.body)
  }
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      if (engine.closed) throw closedEngine()
      return await work()
    } catch (error) {
      if (TuttiError.is(error)) engine.refuse(error.code)
      throw error
    }
  }
  const call =
    (of: Call) =>
    (name: string, o: AgentCommand = {}) =>
      counted(() => command(engine, of, name, o))
  return Object.freeze({
    list: () =>
      counted(async () => {
        const records = await engine.options.store.records(agentKind)
        return Object.freeze(records.map(({ key, body }) => recordOf(key, decodeAgent(key, body))))
      }),
    get: (name: string) => counted(async () => recordOf(name, await read(name))),
    history: (name: string) => counted(async () => deepFreeze((await read(name)).history)),
    pause: call('pause'),
    resume: call('resume'),
    start: call('start'),
    stop: call('stop'),
    terminate: call('terminate'),
  })
}

/** Whether a store could have it: what is no name is not found. */
const isName = (name: unknown): name is string => typeof name === 'string' && /^[^\p{Cc}\p{Cs}]{1,256}$/u.test(name)

async function command(engine: Engine, call: Call, name: string, o: AgentCommand): Promise<AgentRecord> {
  if (!isName(name)) throw notFound(name)
  checkCommand(`agents.${call}()`, o, { ifRevision: aNumber })
  // As they are now: whoever calls may go on with its options while it waits.
  const { key, by, ifRevision } = o
  const request = JSON.stringify([`agent.${call}`, name, ifRevision ?? null])
  let first: AgentRecord | null = null
  const body = await engine.agents.update(name, async (now) => {
    const before = key === undefined ? null : await rememberedUnder(engine, key, request)
    if (before !== null) {
      first = before.agent ?? null
      return { body: null }
    }
    const next = after(name, now, call, { by, ifRevision }, engine.options.clock.now())
    if (key === undefined) return { body: next }
    return { body: next, put: keyPut(key, { request, run: '', agent: recordOf(name, next ?? now) }) }
  })
  if (first !== null) return Object.freeze(first)
  if (body.runtime !== 'stopping') return recordOf(name, body)
  // Where nothing of it is in flight, it has stopped by now.
  await engine.agents.settle(name)
  // Under a key the outcome is what the key stands for, the first time too.
  return recordOf(name, (key === undefined ? engine.agents.known(name) : undefined) ?? body)
}

/** What a call makes of an agent; null if that is what it is. Throws if it may not be. */
function after(name: string, now: AgentBody, call: Call, { by, ifRevision }: AgentCommand, at: number): AgentBody | null {
  if (ifRevision !== undefined && ifRevision !== now.revision)
    throw new TuttiError('REVISION_CHANGED', `the agent ${name} is at revision ${now.revision}, not at ${ifRevision}`, {
      hint: 'look at it again with agents.get() and decide anew',
    })
  const next = changedBy(now, { call, at, by })
  if (next !== null) return next === 'same' ? null : next
  const is = `${now.status} (${now.runtime})`
  if (call === 'resume')
    throw new TuttiError('AGENT_NOT_PAUSED', `the agent ${name} is not paused: it is ${is}`, {
      hint: 'somebody else may have resumed it: look at agents.history()',
    })
  throw new TuttiError('INVALID_TRANSITION', `the agent ${name} is ${is}: ${call} can't change that`, {
    hint: hints[now.status] ?? 'look at agents.history()',
  })
}

const hints: Partial<Record<AgentBody['status'], string>> = {
  paused: 'resume it first',
  stopped: 'start it, once its last turn in flight has ended',
  failed: 'start it, or wait for its breaker to let a turn through',
  terminated: 'that is final',
}
