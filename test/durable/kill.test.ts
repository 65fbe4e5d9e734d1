import * as tutti from 'tutti'
import { expect, test } from 'vitest'
import { decodeEvents } from '../../src/engine/codec.js'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { randomOf } from '../scenarios/adapter.js'
import { house, output, toTheEnd, width } from './children/house.js'
import { Child, each, patience, Place, saying, seed, times } from './processes.js'

interface Kill {
  readonly when: 'before' | 'inside' | 'after'
  readonly nth: number
}

type Line = tutti.JournalEvent & { readonly key?: string; readonly attempt?: number; readonly turn?: number }

/** What the store has of the run, without opening an engine on it. */
async function recorded(place: Place): Promise<Line[]> {
  const store = await sqliteStore(place.store, { durability: 'process' })
  try {
    const loaded = await store.load('run')
    return (await decodeEvents(loaded?.rows ?? [], 0, (hash) => store.blob(hash))) as readonly unknown[] as Line[]
  } finally {
    await store.close()
  }
}

/** The keys of the activities, and the turns, that a journal has the end of. */
function finished(journal: readonly Line[]): { readonly steps: string[]; readonly turns: string[] } {
  const of = (type: string): Extract<Line, { type: 'turn.completed' }>[] => journal.filter((event) => event.type === type) as never
  return {
    steps: journal.flatMap((event) =>
      event.type === 'activity.completed' && event.name !== 'sleep' ? [`/run/${event.branch}/${event.turn}/${event.key}`] : [],
    ),
    turns: [...of('turn.completed'), ...of('turn.failed')].map(({ branch, turn, attempt }) => `${branch}/${turn}/${attempt}`),
  }
}

const countOf = (lines: readonly string[], of: string): number => lines.filter((line) => line.endsWith(of)).length

/** Goes on with what a killed process has left, here, and holds it against what a run that nobody kills comes to. */
async function goesOn(place: Place, kills = 1): Promise<void> {
  const before = await recorded(place)
  const then = { steps: place.lines('step'), turns: place.lines('turn'), acks: place.lines('ack') }
  // Acknowledged means recorded.
  if (then.acks.includes('start')) expect(before.length).toBeGreaterThan(0)
  if (then.acks.includes('answer')) expect(before.some(({ type }) => type === 'ask.answered')).toBe(true)
  const definition = house(tutti, (line) => place.write(line))
  const engine = await tutti.open({ store: place.store, definitions: [definition], invariants: true })
  try {
    const result = await toTheEnd(engine, definition, (line) => place.write(line))
    expect(result).toMatchObject({ status: 'succeeded', output })
  } finally {
    await engine.close()
  }
  const after = await recorded(place)
  const now = { steps: place.lines('step'), turns: place.lines('turn') }
  const done = finished(before)
  for (const key of done.steps) expect(countOf(now.steps, key), `${key} is recorded and ran again`).toBe(countOf(then.steps, key))
  for (const turn of done.turns) expect(countOf(now.turns, turn), `${turn} had ended and ran again`).toBe(countOf(then.turns, turn))
  // An effect happens once, and once more for each death before it was recorded; never under another key.
  const keys = [...new Set(now.steps)]
  expect(keys).toHaveLength(3 + width + 1)
  for (const key of keys) expect(countOf(now.steps, key)).toBeLessThanOrEqual(1 + kills)
  isWhole(after)
  expect(after.slice(0, before.length)).toEqual(before)
}

/** The journal has no gap, and nothing in it has the id of something else. */
function isWhole(journal: readonly Line[]): void {
  expect(journal.map(({ seq }) => seq)).toEqual(journal.map((_, at) => at + 1))
  const ids = journal.flatMap((event) => {
    switch (event.type) {
      case 'branch.opened':
        return [`branch ${event.branch}`]
      case 'ask.opened':
        return [`ask ${event.ask.id}`]
      case 'turn.started':
        return [`turn ${event.branch}/${event.turn}/${event.attempt}`]
      case 'activity.completed':
        return [`step ${event.branch}/${event.turn}/${event.attempt}/${event.key}`]
      case 'run.started':
      case 'run.succeeded':
        return [event.type]
      case 'run.claimed':
        return [`epoch ${event.epoch}`]
      default:
        return []
    }
  })
  expect(ids).toHaveLength(new Set(ids).size)
}

/** How many were really killed, and not over before. */
let kills = 0
const counted = (how: unknown): void => void (kills += how === 'SIGKILL' ? 1 : 0)

async function killed(kill: Kill): Promise<void> {
  using place = new Place()
  await saying(`killed ${kill.when} commit ${kill.nth}`, async () => {
    await using child = new Child('killed', place, { kill })
    // The later commits are not always there: how many share one is a matter of timing.
    counted(await child.end())
    await goesOn(place)
  })
}

test('a run that nobody kills comes to its end, and every effect of it happens once', patience, async () => {
  using place = new Place()
  await using child = new Child('killed', place)
  expect(await child.said()).toBe('opened')
  expect(await child.said()).toMatchObject({ output })
  expect(await child.end()).toBe(0)
  expect(new Set(place.lines('step')).size).toBe(place.lines('step').length)
  isWhole(await recorded(place))
})

test('G1 a process killed before, inside or after any commit leaves a run that ends as if nobody had', patience, async () => {
  using place = new Place()
  await using whole = new Child('killed', place)
  await whole.line()
  const { commits } = await whole.said<{ commits: number }>()
  const modes = ['before', 'inside', 'after'] as const
  const rounds = times(1, 5)
  const kills = Array.from({ length: rounds * commits * modes.length }, (_, at) => ({
    nth: 1 + (Math.floor(at / modes.length) % commits),
    when: modes[at % modes.length] ?? 'before',
  }))
  // Of the three ways to be killed at a commit, a quick test takes one in turn.
  const chosen = times(1, 0) === 1 ? kills.filter(({ nth }, at) => at % modes.length === (nth + seed) % modes.length) : kills
  await saying(`TUTTI_SEED=${seed}`, () => each(chosen, 2, killed))
})

test('a process killed at a random moment leaves a run that ends as if nobody had', patience, async () => {
  const random = randomOf(seed)
  const moments = Array.from({ length: times(10, 150) }, () => random() * 150)
  await saying(`TUTTI_SEED=${seed}`, () =>
    each(moments, 2, async (ms) => {
      using place = new Place()
      await using child = new Child('killed', place)
      await child.line()
      await new Promise((resolve) => setTimeout(resolve, ms))
      counted(await child.kill())
      await saying(`killed ${ms} ms after it had opened`, () => goesOn(place))
    }),
  )
})

test('a process killed while it recovers a killed one leaves a run that ends as if nobody had', patience, async () => {
  const random = randomOf(seed + 1)
  const modes = ['before', 'inside', 'after'] as const
  const any = (most: number): Kill => ({ nth: 1 + Math.floor(random() * most), when: modes[Math.floor(random() * 3)] ?? 'before' })
  const chains = Array.from({ length: times(5, 60) }, () => [any(12), any(6), any(4)])
  await saying(`TUTTI_SEED=${seed}`, () =>
    each(chains, 2, async (chain) => {
      using place = new Place()
      await saying(`killed at ${JSON.stringify(chain)}`, async () => {
        for (const kill of chain) {
          await using child = new Child('killed', place, { kill })
          counted(await child.end())
        }
        await goesOn(place, chain.length)
      })
    }),
  )
})

test('enough processes were killed for this to mean something', () => {
  expect(kills).toBeGreaterThanOrEqual(times(25, 300))
})
