import { TuttiError } from '../define/tutti-error.js'
import type { Halted } from '../kernel/lifecycle.js'
import { thrownText } from '../kernel/thrown-text.js'
import { type AgentBody, agentKind, changedBy, decodeAgent, registered } from './agent-record.js'
import { afterAttempt, type Breaker, probing, unprobed } from './breaker.js'
import { dueNow, type Put, type Store } from './store.js'
import type { Clock, LogEntry } from './tutti.js'

export interface AgentsPort {
  readonly store: Store
  readonly worker: number
  readonly clock: Clock
  readonly onLog: (entry: LogEntry) => void
  /** Something about an agent has changed: turns of it that wait are looked at again. */
  changed(name: string): void
  /** Nobody knows what became of a change: what is known of agents must be read again before a turn begins. */
  unsure(): void
}

/** Whether a turn of an agent may begin: `probe` if it may after it has asked to be the one that tries; if it fails, what its agent is. */
export type Admission = 'go' | 'wait' | 'probe' | Halted

/** What an attempt has come to; whether it is rejected is only looked at where failures are counted. */
export interface Came {
  readonly failed: boolean
  rejected(): boolean
}

/** What becomes of an agent, with what else is written at once; null: nothing is written. */
export interface Update {
  readonly body: AgentBody | null
  readonly put?: Put
}

/** What this process knows of one agent, and has of it. */
export interface AgentHere {
  readonly name: string
  /** Its record, and of which revision of the store's; undefined: there is none that is known here. */
  body: AgentBody | undefined
  stored: number
  /** How many of its turns have begun here and not ended. */
  inFlight: number
  /** It works, and nobody holds it back or tries it: then nothing is asked of a turn that begins, and nothing counted of one that worked. */
  isFree: boolean
}

/**
 * The agents of a store as this process knows them.
 *
 * 1. A record changes only by compare-and-set on what was read right before; what is refused is refused on that reading.
 * 2. What is known only grows newer: a record is replaced by one of a higher revision of the store's.
 * 3. Once this worker knows that an agent is held back, no turn of it begins here: whoever waits for its turns in flight to end needs to
 *    hear from every live worker once, and that is `idle`.
 */
export class Agents {
  readonly #port: AgentsPort
  readonly #here = new Map<string, AgentHere>()
  readonly #settling = new Map<string, Promise<void>>()
  readonly #probing = new Set<string>()

  constructor(port: AgentsPort) {
    this.#port = port
  }

  /** Reads what others have changed. */
  async refresh(): Promise<void> {
    for (const { key, revision, body } of await this.#port.store.records(agentKind))
      if (revision > this.here(key).stored) this.#read(key, revision, body)
  }

  /** Registers those that the store has not heard of. */
  async register(names: readonly string[]): Promise<void> {
    const unknown = names.filter((name) => this.known(name) === undefined)
    if (unknown.length === 0) return
    await this.refresh()
    const missing = unknown.filter((name) => this.known(name) === undefined)
    if (missing.length === 0) return
    const body = registered(this.#port.clock.now())
    const verdicts = await this.#port.store.commit(
      missing.map((key) => ({ kind: agentKind, key, expect: 0, body: JSON.stringify(body) }) satisfies Put),
    )
    missing.forEach((name, index) => {
      if (verdicts[index]?.ok) this.#learn(name, 1, body)
    })
    // Of those that others have registered meanwhile.
    if (verdicts.some(({ ok }) => !ok)) await this.refresh()
  }

  /** What can't be read is left alone: it must not keep an engine from everything else. */
  #read(name: string, stored: number, text: string): void {
    try {
      this.#learn(name, stored, decodeAgent(name, text))
    } catch (error) {
      this.#port.onLog({ level: 'error', message: thrownText(error) })
    }
  }

  here(name: string): AgentHere {
    const known = this.#here.get(name)
    if (known !== undefined) return known
    const here: AgentHere = { name, body: undefined, stored: 0, inFlight: 0, isFree: true }
    this.#here.set(name, here)
    return here
  }

  known(name: string): AgentBody | undefined {
    return this.#here.get(name)?.body
  }

  // ── turns ──────────────────────────────────────────────────────────────────────────────────────────────

  /** May a turn begin? `of` is which: while an agent is starting, only the one that tries may. */
  admission({ body }: AgentHere, whenStopped: 'fail' | 'wait', of: () => string): Admission {
    if (body === undefined) return 'go'
    switch (body.status) {
      case 'pending':
      case 'running':
        return body.runtime !== 'starting' || this.#probes(body, of) ? 'go' : 'wait'
      case 'paused':
        return 'wait'
      case 'stopped':
        return whenStopped === 'wait' ? 'wait' : body.status
      case 'terminated':
        // Whoever waited for it would wait for ever.
        return body.status
      case 'failed':
        if (body.probeAt !== null && body.probeAt <= this.#port.clock.now()) return 'probe'
        return whenStopped === 'wait' ? 'wait' : body.status
    }
  }

  /** A turn of an agent that is not free has ended here, or was not begun after all. */
  ended({ name, inFlight, body }: AgentHere, of: () => string): void {
    this.unprobe(name, of)
    if (inFlight === 0 && body?.runtime === 'stopping') void this.#quietly(this.settle(name))
  }

  /** Whether something is to be written of what an attempt has come to: not of an agent that works. */
  counts({ body }: AgentHere, breaker: Breaker | undefined, failed: boolean): boolean {
    return body !== undefined && (failed ? breaker !== undefined : body.failures > 0 || body.probe !== null)
  }

  /** An attempt has come to something that counts. */
  attempted(name: string, of: () => string, breaker: Breaker | undefined, came: Came): Promise<void> {
    const at = this.#port.clock.now()
    const end = { failed: came.failed, rejected: came.rejected(), at }
    return this.#quietly(this.update(name, (now) => ({ body: afterAttempt(now, breaker, { ...end, probes: this.#probes(now, of) }) })))
  }

  /** Asks that this turn may try whether a failed agent works again; one at a time. */
  async probe(name: string, of: string): Promise<void> {
    if (this.#probing.has(name)) return
    this.#probing.add(name)
    const { worker, clock } = this.#port
    await this.#quietly(this.update(name, (now) => ({ body: probing(now, { worker, of }, clock.now()) })))
    this.#probing.delete(name)
  }

  /** This turn will not try any more. */
  unprobe(name: string, of: () => string): void {
    const body = this.known(name)
    if (body === undefined || !this.#probes(body, of)) return
    const at = this.#port.clock.now()
    void this.#quietly(this.update(name, (now) => ({ body: this.#probes(now, of) ? unprobed(now, at) : null })))
  }

  /** Whether this is the turn that tries; hardly ever is there one, so which turn it is need not be known before. */
  #probes({ probe }: AgentBody, of: () => string): boolean {
    return probe !== null && probe.worker === this.#port.worker && probe.of === of()
  }

  // ── changes ────────────────────────────────────────────────────────────────────────────────────────────

  /** Changes an agent: what is read, what is made of it, and the write that only stands if nobody was faster. */
  async update(name: string, make: (body: AgentBody) => Update | Promise<Update>): Promise<AgentBody> {
    const { store } = this.#port
    for (;;) {
      const found = await store.record(agentKind, name)
      if (found === null) throw notFound(name)
      const before = decodeAgent(name, found.body)
      if (found.revision > this.here(name).stored) this.#learn(name, found.revision, before)
      const { body, put } = await make(before)
      if (body === null && put === undefined) return before
      const wakeMarked = { kind: agentKind, key: name, at: dueNow }
      const change = body && { kind: agentKind, key: name, expect: found.revision, body: JSON.stringify(body), wakeMarked }
      const item = change === null ? put : put === undefined ? change : { ...change, puts: [put] }
      const [verdict] = item === undefined ? [] : await this.#committed(store.commit([item]))
      if (verdict?.ok !== true) continue
      if (body !== null) this.#learn(name, found.revision + 1, body)
      return body ?? before
    }
  }

  async #committed<T>(commit: Promise<T>): Promise<T> {
    try {
      return await commit
    } catch (error) {
      this.#port.unsure()
      throw error
    }
  }

  /**
   * Says that none of its turns is in flight here, and that it has stopped once every live worker has said so. A worker that came later
   * has found it stopping; one that died has nothing in flight. Hence the living are asked for after it was seen to be stopping.
   */
  settle(name: string): Promise<void> {
    const settling = this.#settling.get(name) ?? this.#settle(name).finally(() => this.#settling.delete(name))
    this.#settling.set(name, settling)
    return settling
  }

  async #settle(name: string): Promise<void> {
    const { worker, clock } = this.#port
    const isQuiet = (): boolean => this.here(name).inFlight === 0
    const seen = this.known(name)
    if (seen?.runtime !== 'stopping' || !isQuiet()) return
    const living = await this.#living()
    await this.update(name, (body) => {
      if (body.revision !== seen.revision || !isQuiet()) return { body: null }
      const idle = [...new Set([...body.idle.filter((other) => living.has(other)), worker])]
      const isLast = [...living].every((other) => idle.includes(other))
      const settled = isLast ? changedBy(body, { call: 'settle', at: clock.now() }) : null
      if (settled !== null && settled !== 'same') return { body: settled }
      return { body: idle.length === body.idle.length && body.idle.includes(worker) ? null : { ...body, idle } }
    })
  }

  async #living(): Promise<ReadonlySet<number>> {
    const peers = await this.#port.store.beat(this.#port.worker)
    return new Set([this.#port.worker, ...peers.flatMap(({ worker, gone }) => (gone ? [] : [worker]))])
  }

  /** Workers come and go: what waits for one that is gone goes on. */
  async watched(): Promise<void> {
    const open = [...this.#here.values()].filter(({ body }) => body !== undefined && (body.runtime === 'stopping' || body.probe !== null))
    if (open.length === 0) return
    await this.#quietly(this.#goOn(open.map(({ name }) => name)))
  }

  async #goOn(names: readonly string[]): Promise<void> {
    const living = await this.#living()
    for (const name of names) {
      const body = this.known(name)
      if (body?.runtime === 'stopping') await this.settle(name)
      else if (body?.probe && !living.has(body.probe.worker)) await this.#abandon(name, body.probe.worker)
    }
  }

  /** The process with the turn that was to try is gone. */
  async #abandon(name: string, worker: number): Promise<void> {
    const at = this.#port.clock.now()
    await this.update(name, (body) => ({ body: body.probe?.worker === worker ? unprobed(body, at) : null }))
  }

  #learn(name: string, stored: number, body: AgentBody): void {
    const here = this.here(name)
    const before = here.body
    if (before !== undefined && here.stored >= stored) return
    here.stored = stored
    here.body = body
    here.isFree = isFree(body)
    if (body.runtime === 'stopping') void this.#quietly(this.settle(name))
    if (before?.revision !== body.revision) this.#port.changed(name)
  }

  /** What nobody waits for must not fail unheard. What it was about is looked at again when workers are watched. */
  async #quietly(work: Promise<unknown>): Promise<void> {
    try {
      await work
    } catch (error) {
      this.#port.onLog({
        level: 'warn',
        message: `an agent's record could not be changed: ${thrownText(error)}`,
      })
    }
  }
}

function isFree({ status, runtime, failures, probe }: AgentBody): boolean {
  const works = (status === 'pending' || status === 'running') && runtime !== 'starting' && runtime !== 'stopping'
  return works && failures === 0 && probe === null
}

/** There is no agent of this name on the store. */
export function notFound(name: string): TuttiError {
  return new TuttiError('AGENT_NOT_FOUND', `there is no agent ${JSON.stringify(String(name))} on this store`, {
    hint: 'an agent is there once a process has opened the store with a definition that contains it: agents.list() has them all',
  })
}
