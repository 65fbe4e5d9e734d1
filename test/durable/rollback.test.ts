import * as tutti from 'tutti'
import { expect, test } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { rollback, steps, toTheEnd } from './children/rollback.js'
import { Child, patience, Place, saying, soaking } from './processes.js'

const moments = ['before', 'inside', 'after'] as const

/** What the journal says is undone. */
async function undoneIn(place: Place): Promise<string[]> {
  const store = await sqliteStore(place.store, { durability: 'process' })
  try {
    const events = ((await store.load('run'))?.rows ?? []).flatMap(({ body }) => JSON.parse(body) as { type: string; of?: string }[])
    return events.flatMap(({ type, of }) => (type === 'undo.completed' && of !== undefined ? [of] : []))
  } finally {
    await store.close()
  }
}

const nameOf = (line: string): string => line.split(' ')[0] ?? ''
const count = (lines: readonly string[], step: string): number => lines.filter((line) => nameOf(line) === step).length

test(
  'killed at any write of a rollback of ten, it goes on where it was, and nothing that is undone is undone again',
  patience,
  async () => {
    using whole = new Place()
    await using calm = new Child('killed', whole, { of: 'rollback' })
    await calm.line()
    const { commits, output } = await calm.said<{ commits: number; output: unknown }>()
    expect(output).toEqual({ status: 'failed', rollback: 'complete' })
    expect(whole.lines('undo').map(nameOf)).toEqual([...steps].reverse())
    // One write for each undo at least, and the last ones of the run.
    const first = commits - steps.length - 1
    for (let nth = first; nth <= commits; nth++)
      for (const when of soaking ? moments : [moments[nth % moments.length] ?? 'inside'])
        await saying(`killed ${when} commit ${nth} of ${commits}`, async () => {
          using place = new Place()
          await using child = new Child('killed', place, { of: 'rollback', kill: { when, nth } })
          await child.end()
          const recorded = await undoneIn(place)
          const before = place.lines('undo')
          const definition = rollback(tutti, (line) => place.write(line))
          await using engine = await tutti.open({ store: place.store, definitions: [definition], invariants: true })
          expect(await toTheEnd(engine, definition)).toEqual({ status: 'failed', rollback: 'complete' })
          const after = place.lines('undo')
          for (const step of recorded) expect(count(after, step), `${step} was undone again`).toBe(count(before, step))
          for (const step of steps) {
            expect(count(after, step)).toBeGreaterThanOrEqual(1)
            expect(count(after, step)).toBeLessThanOrEqual(2)
          }
          // Whatever was tried twice was tried under one key, and the order is still against causality.
          expect(new Set(after).size).toBe(steps.length)
          expect([...new Set(after.map(nameOf))]).toEqual([...steps].reverse())
        })
  },
)
