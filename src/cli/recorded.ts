import type { RunRow, Store } from '../engine/store.js'
import type { Ask } from '../inspect/ask.js'
import type { Event } from '../kernel/event.js'
import { placeOf } from '../models/call-place.js'
import type { ModelAnswer } from '../models/model-answer.js'
import type { ModelFactory } from '../models/model-factory.js'
import { playingModel } from '../models/playing-model.js'
import { journalOf } from './journal.js'

/** What a run was given from outside: its input, what people answered, and what models said. Both are found by their place in the run. */
export interface Recorded {
  readonly input?: unknown
  readonly answers: (ask: Ask) => unknown
  /** Absent if no model was asked. */
  readonly models?: ModelFactory
}

/** Reads from the journals of a run and its child runs what they were given. */
export async function recordedOf(store: Store, { id }: RunRow): Promise<Recorded> {
  const events = await journalOf(store, id)
  const answers = new Map(answersOf(events, ''))
  const said = new Map(saidIn(events, ''))
  for (const child of await store.list({ prefix: `${id}:`, limit: Number.POSITIVE_INFINITY })) {
    const journal = await journalOf(store, child.id)
    const of = child.id.slice(id.length)
    for (const [ask, value] of answersOf(journal, of)) answers.set(ask, value)
    for (const [call, answer] of saidIn(journal, of)) said.set(call, answer)
  }
  const started = events.find((event) => event.type === 'run.started')
  return {
    ...(started?.input !== undefined && { input: started.input }),
    answers: ({ runId, id: ask }) => answers.get(`${childPart(runId)}/${ask}`),
    ...(said.size > 0 && { models: recordedModels(said) }),
  }
}

/** What tells a child run from the others of its run, whatever that is called. */
const childPart = (runId: string): string => runId.replace(/^[^:]*/, '')

function answersOf(events: readonly Event[], of: string): (readonly [string, unknown])[] {
  return events.flatMap((event) => (event.type === 'ask.answered' ? [[`${of}/${event.askId}`, event.value] as const] : []))
}

/** What models answered, by branch, turn and call. */
function saidIn(events: readonly Event[], of: string): (readonly [string, ModelAnswer])[] {
  const calls = new Map<string, number>()
  return events.flatMap((event) => {
    if (event.type !== 'activity.completed' || event.name !== 'model') return []
    const turn = `${of}/${event.branch}/${event.turn}`
    const call = calls.get(turn) ?? 0
    calls.set(turn, call + 1)
    return [[`${turn}/${call}`, event.value as ModelAnswer] as const]
  })
}

function recordedModels(said: ReadonlyMap<string, ModelAnswer>): ModelFactory {
  return () =>
    playingModel('tutti', 'recorded', (options) => {
      const place = placeOf(options)
      const answer = place && said.get(`${childPart(place.run)}/${place.branch}/${place.turn}/${place.call}`)
      if (answer === undefined) throw new Error(`the recorded run has no call of ${place?.agent} on ${place?.branch}, turn ${place?.turn}`)
      const text = answer.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
      const calls = answer.parts.flatMap((part) => (part.type === 'call' ? [{ name: part.tool, input: inputOf(part.input) }] : []))
      return { ...(text !== '' && { text }), calls }
    })
}

/** A model may have said what is no JSON: it says so again. */
function inputOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
