import type { Action, JournalEvent, OpenOptions, Role, Run, Topology, Turn, Tutti } from 'tutti'
import { open, TuttiError, topology } from 'tutti'
import { virtualClock } from 'tutti/testing'

/** An engine in memory that checks its invariants after every event. */
export function opened(options: OpenOptions = {}): Promise<Tutti> {
  return open({ store: 'memory:', invariants: true, ...options })
}

/** The same on a clock that the test moves. */
export async function timed(
  options: OpenOptions = {},
): Promise<{ tutti: Tutti; clock: ReturnType<typeof virtualClock> } & AsyncDisposable> {
  const clock = virtualClock()
  const tutti = await opened({ clock, ...options })
  const dispose = async (): Promise<void> => {
    const closed = tutti.close()
    await clock.advance(60_000)
    await closed
  }
  return { tutti, clock, [Symbol.asyncDispose]: dispose }
}

export type SoloTurn = Turn<Role<'A', 'End' | 'User', any, any, any, any, any>>
export type HubTurn = Turn<Role<'H', 'End' | 'User' | 'W', any, any, any, any, any>>
export type WorkerTurn = Turn<Role<'W', 'H' | 'User', any, any, any, any, any>>
type Given<T> = ((turn: T) => unknown) | (Readonly<Record<string, unknown>> & { act: unknown })
type Rest = Readonly<Record<string, unknown>>

/** One agent, which may finish and ask. */
export function solo(a: Given<SoloTurn>, rest: Rest = {}): Topology<unknown, unknown> {
  return topology({ name: 'solo', flows: ['Start -> A -> End', 'A -> User'], agents: { A: a }, ...rest } as never) as never
}

/** A hub that forks workers, all of one agent. */
export function hub(h: Given<HubTurn>, w: Given<WorkerTurn>, rest: Rest = {}): Topology<unknown, unknown> {
  const flows = ['Start -> H -> End', 'H <-> W', 'H | W -> User']
  return topology({ name: 'hub', flows, agents: { H: h, W: w }, ...rest } as never) as never
}

/** A hub that forks its worker once for each request, and finishes with what they give. */
export const forksEach =
  (requests: readonly unknown[], join?: unknown) =>
  (turn: HubTurn): Action =>
    turn.message.kind === 'join'
      ? turn.finish(turn.message.join.values)
      : turn.fork(
          requests.map((request) => ({ to: 'W', request })),
          join === undefined ? {} : { join: join as never },
        )

/** A promise in the hand of the test. */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve: (value: T) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

/** Lets everything happen that can happen without time going on. */
export async function rest(tasks = 40): Promise<void> {
  for (let task = 0; task < tasks; task++) await new Promise((resolve) => setImmediate(resolve))
}

/** The whole journal of a run that is over, or will be. */
export async function journal(run: Run): Promise<JournalEvent[]> {
  const events: JournalEvent[] = []
  for await (const event of run.events()) events.push(event)
  return events
}

/** The journal of a run as it is now. */
export async function journalSoFar(run: Run): Promise<JournalEvent[]> {
  const events: JournalEvent[] = []
  const stop = new AbortController()
  const reading = (async () => {
    for await (const event of run.events({ signal: stop.signal })) events.push(event)
  })()
  await rest()
  stop.abort()
  await reading
  return events
}

export const typesOf = (events: readonly { readonly type: string }[]): string[] => events.map(({ type }) => type)

/** The code that something is refused with; what else it comes to, if it is not. */
export async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    return { accepted: await promise }
  } catch (error) {
    return TuttiError.is(error) ? error.code : error
  }
}

/** A body that does not end before its signal says so. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
