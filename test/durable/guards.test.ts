/**
 * Each guard is taken out once, in a copy of what was built, to see that the attack it stands against succeeds without it. The same attack
 * on the build as it is shows that the guard is what stops it.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as tutti from 'tutti'
import { expect, test } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { counted } from './children/counted.js'
import { chainsOutput, orphan } from './children/plays.js'
import { Child, patience, Place, until } from './processes.js'

interface Cut {
  readonly file: string
  readonly find: string
  readonly put: string
}

const root = fileURLToPath(new URL('../../', import.meta.url))

/** What was built, with something in it changed, for as long as a test takes. */
class Build implements Disposable {
  readonly #folder: string | null
  readonly env: Readonly<Record<string, string>>

  constructor(cut: Cut | null) {
    this.#folder = cut === null ? null : this.#copy(cut)
    this.env = this.#folder === null ? {} : { TUTTI_DIST: `${pathToFileURL(this.#folder).href}/` }
  }

  #copy({ file, find, put }: Cut): string {
    // Inside the project, so that what it depends on is found.
    const cache = join(root, 'node_modules', '.cache')
    mkdirSync(cache, { recursive: true })
    const folder = mkdtempSync(join(cache, 'tutti-guard-'))
    cpSync(join(root, 'dist'), folder, { recursive: true, filter: (path) => !/\.(map|d\.ts|tsbuildinfo)$/.test(path) })
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const text = readFileSync(join(folder, file), 'utf8')
    if (text.split(find).length !== 2) throw new Error(`the guard in ${file} is not where it was: ${find}`)
    writeFileSync(join(folder, file), text.replace(find, put))
    return folder
  }

  [Symbol.dispose](): void {
    if (this.#folder !== null) rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** The attack, on the build as it is and on one without the guard: whether it succeeds. */
function guard(what: string, cut: Cut, attack: (env: Readonly<Record<string, string>>) => Promise<boolean>): void {
  test(`${what} stops an attack that succeeds without it`, patience, async () => {
    using whole = new Build(null)
    expect(await attack(whole.env), 'with the guard').toBe(false)
    using broken = new Build(cut)
    expect(await attack(broken.env), 'without the guard').toBe(true)
  })
}

const pidsOf = (place: Place): number[] => place.lines('effect').map((line) => Number(line.split(' ')[0]))

guard(
  'the epoch check',
  {
    file: 'stores/sqlite-commit.js',
    find: 'if (item.owner !== undefined && (known.worker !== item.owner.worker || known.epoch !== item.owner.epoch))',
    put: 'if (false)',
  },
  // A process that was frozen, lost its run, and is told of nothing goes on with it.
  async (env) => {
    using place = new Place()
    const options = { steps: 40, ms: 15 }
    await using frozen = new Child('worker', place, { play: 'orphan', options, ttlMs: 100, blind: true }, env)
    await frozen.line()
    frozen.tell(JSON.stringify({ start: ['run'] }))
    await frozen.line()
    await until('it is at work', () => pidsOf(place).length >= 4)
    await frozen.freeze(place)
    const definition = orphan(tutti, (line) => place.write(line), options)
    await using _other = await tutti.open({ store: place.store, definitions: [definition], workerTtlMs: 100 })
    await until('another takes over', () => pidsOf(place).includes(process.pid))
    const [pid] = pidsOf(place)
    const before = pidsOf(place).filter((one) => one === pid).length
    frozen.signal('SIGCONT')
    await new Promise((resolve) => setTimeout(resolve, 250))
    return pidsOf(place).filter((one) => one === pid).length > before
  },
)

guard(
  'the second reading of the head',
  {
    file: 'engine/lookout.js',
    find: 'return entry.stale || entry.reading !== null || (entry.owner === null && entry.state !== newState);',
    put: 'return entry.stale;',
  },
  // A process that has read a run before refuses what is right by now.
  async (env) => {
    using place = new Place()
    const definition = counted(tutti, () => {})
    await using engine = await tutti.open({ store: place.store, definitions: [definition] })
    const run = await engine.start(definition)
    await using caller = new Child('caller', place, {}, env)
    await caller.line()
    const resume = async (): Promise<string | undefined> => {
      caller.tell(JSON.stringify({ act: 'resume', run: run.id }))
      return (await caller.said<{ code?: string }>()).code
    }
    expect(await resume()).toBe('RUN_NOT_PAUSED')
    await run.pause()
    return (await resume()) === 'RUN_NOT_PAUSED'
  },
)

guard(
  'the replay of activities',
  { file: 'engine/activities.js', find: 'const records = work?.records.values() ?? [];', put: 'const records = [];' },
  // What is recorded is executed again after a crash.
  async (env) => {
    using place = new Place()
    const play = { play: 'inOrder', ids: ['run'] }
    await using killed = new Child('player', place, { ...play, options: { name: 'order', steps: ['a', 'b', 'c'], hangsAt: 'c' } })
    await until('the third is executed', () => place.lines('executed').includes('c'))
    await killed.kill()
    await using _next = new Child('player', place, { ...play, options: { name: 'order', steps: ['a', 'b', 'c'] } }, env)
    await until('it goes on', () => place.lines('executed').length > 3)
    return place.lines('executed')[3] === 'a'
  },
)

guard(
  'the delivery one by one',
  {
    file: 'engine/activities.js',
    find: 'this.#port.later(this.#tick, isDue || this.#idle < looksAtOnce ? undefined : lookMs);',
    put: 'if (isDue) this.#tick(); else this.#port.later(this.#tick, lookMs);',
  },
  // Chains of steps that were interrupted don't come to what they would have.
  async (env) => {
    using place = new Place()
    const ids = Array.from({ length: 30 }, (_, n) => `run-${n}`)
    await using killed = new Child('player', place, { play: 'chains', ids })
    await until('some have stored something', () => place.lines('store').length >= 45)
    await killed.kill()
    await using next = new Child('player', place, { play: 'chains', ids }, env)
    await next.line()
    const outputs = await next.said<unknown[]>()
    return !outputs.every((output) => JSON.stringify(output) === JSON.stringify(chainsOutput))
  },
)

guard(
  'the commit before the acknowledgement',
  {
    file: 'engine/loop.js',
    find: 'this.#port.store.commit(items)',
    put: '(setTimeout(() => void this.#port.store.commit(items), 20), Promise.resolve(items.map(() => ({ ok: true, epoch: 1 }))))',
  },
  // A start is acknowledged that nobody will ever hear of again. The commit before it registers the agents.
  async (env) => {
    using place = new Place()
    await using killed = new Child('killed', place, { kill: { when: 'before', nth: 2 } }, env)
    // Without the guard it may miss its own run before it is killed.
    await killed.end().catch(() => {})
    const store = await sqliteStore(place.store, { durability: 'process' })
    const isThere = (await store.load('run')) !== null
    await store.close()
    return place.lines('ack').includes('start') && !isThere
  },
)
