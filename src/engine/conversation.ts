import { isStorable } from '../define/storable.js'
import { TuttiError } from '../define/tutti-error.js'
import type { Said, State } from '../kernel/state.js'
import type { Mark, Store } from './store.js'

/** How much of a conversation a new run is given: the newest of it. */
const saidMax = 200
const bytesMax = 500_000

const kindOf = (session: string): string => `said in ${session}`

/** What a run adds to the conversation of its session: what it was asked and what it gave, with the write that ends it. A child run adds nothing. */
export function saidMarks(before: State, after: State): Mark[] {
  const { run, outcome } = after
  if (before.status === after.status || after.status !== 'succeeded' || outcome?.status !== 'succeeded') return []
  if (run === null || run.session === null || run.parent !== null) return []
  const said: Said = { input: run.input, output: outcome.output }
  return [{ kind: kindOf(run.session), key: 'said', body: JSON.stringify(said) }]
}

/** What runs of a session that have ended left of it, in the order in which they ended: the store's, because times may be equal, or go backwards. */
export async function conversationOf(store: Store, session: string): Promise<readonly Said[]> {
  const marks = await store.marks({ kind: kindOf(session) })
  const newest: Said[] = []
  let bytes = 0
  for (const { body } of marks.toReversed()) {
    if (body === null) continue
    bytes += body.length
    if (bytes > bytesMax || newest.length === saidMax) break
    const { input, output } = JSON.parse(body) as Said
    newest.push({ input, output })
  }
  return newest.reverse()
}

/** The name of a session is a short text. */
export function checkSession(session: unknown): void {
  if (typeof session === 'string' && session !== '' && session.length <= 256 && isStorable(session)) return
  throw new TuttiError('INVALID_INPUT', 'a session is a text of 1 to 256 characters, with no control characters')
}
