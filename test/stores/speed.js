/**
 * How fast the SQLite store commits, against the floor: one INSERT in its own transaction, on the same file system, equally durable.
 * `npm run build && node test/stores/speed.js [rounds]`
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from '../../dist/stores/sqlite.js'
import { loadDriver, openDatabase } from '../../dist/stores/sqlite-driver.js'

const rounds = Number(process.argv[2] ?? 3)
const body = JSON.stringify([{ type: 'turn.ended', branch: 'b1', turn: 3, output: 'x'.repeat(150) }])
const folder = mkdtempSync(join(tmpdir(), 'tutti-speed-'))
const driver = await loadDriver()

/** @param {() => void | Promise<void>} work */
async function timed(work) {
  const from = performance.now()
  await work()
  return performance.now() - from
}

/** @param {'process' | 'power'} durability @param {number} round */
async function floor(durability, round) {
  const db = openDatabase(driver, join(folder, `floor-${durability}-${round}.db`), 'write')
  db.exec(`pragma journal_mode = wal; pragma synchronous = ${durability === 'power' ? 'full' : 'normal'}`)
  db.exec('create table event (id integer primary key, body text not null)')
  const insert = db.prepare('insert into event (body) values (?)')
  const ms = await timed(() => {
    for (let i = 0; i < 1_000; i++) insert.run(body)
  })
  db.close()
  return ms
}

/** @param {'process' | 'power'} durability @param {number} round @param {boolean} listening */
async function measured(durability, round, listening) {
  const store = await sqliteStore(join(folder, `store-${durability}-${round}-${listening}.db`), { durability })
  const by = await store.join({ nonce: 'speed' })
  if (listening) store.onMoved(() => {})
  const runs = Array.from({ length: 100 }, (_, index) => `run-${index}`)
  const owner = { worker: by, epoch: 1 }
  const create = { definition: 'd', version: '1', tags: {} }
  await store.commit(runs.map((run) => ({ run, create, expect: 0, head: 1, by, at: 1, own: 'take', rows: [{ seq: 1, n: 1, body }] })))
  const heads = new Map(runs.map((run) => [run, 1]))
  /** @param {string} run */
  const append = (run) => {
    const expect = heads.get(run) ?? 0
    heads.set(run, expect + 1)
    return { run, expect, head: expect + 1, owner, by, at: 2, rows: [{ seq: expect + 1, n: 1, body }] }
  }
  const one = await timed(async () => {
    for (let i = 0; i < 1_000; i++) await store.commit([append('run-0')])
  })
  const hundred = await timed(async () => {
    for (let i = 0; i < 10; i++) await store.commit(runs.map(append))
  })
  const many = await timed(async () => {
    await store.commit(Array.from({ length: 512 }, (_, index) => append(`run-${index % 100}`)))
  })
  const created = await timed(async () => {
    for (let i = 0; i < 10; i++) {
      await store.commit(
        runs.map((run) => ({ run: `${run}-${i}`, create, expect: 0, head: 1, by, at: 1, own: 'take', rows: [{ seq: 1, n: 1, body }] })),
      )
    }
  })
  const moved = await timed(() => {
    for (let i = 0; i < 10_000; i++) store.moved(by)
  })
  await store.close()
  return { one, hundred, many, created, moved }
}

/** @param {number[]} values */
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
/** @param {number} ms */
const ms = (ms) => `${ms.toFixed(1)} ms`

for (const durability of /** @type {const} */ (['process', 'power'])) {
  const floors = []
  const quiet = []
  const watched = []
  for (let round = 0; round < rounds; round++) {
    floors.push(await floor(durability, round))
    quiet.push(await measured(durability, round, false))
    watched.push(await measured(durability, round, true))
  }
  const base = median(floors)
  /** @param {string} what @param {number} value */
  const line = (what, value) => console.log(`  ${what.padEnd(48)} ${ms(value).padStart(10)}  ratio ${(value / base).toFixed(2)}`)
  console.log(`${durability}: Node ${process.versions.node}, 1,000 plain inserts, each in a transaction: ${ms(base)}`)
  line('1,000 commits of 1 append', median(quiet.map(({ one }) => one)))
  line('the same, while somebody listens', median(watched.map(({ one }) => one)))
  line('1,000 appends in batches of 100', median(quiet.map(({ hundred }) => hundred)))
  line('1,000 new runs in batches of 100', median(quiet.map(({ created }) => created)))
  line('one batch of 512 appends', median(quiet.map(({ many }) => many)))
  console.log(`  moved(): ${((median(quiet.map(({ moved }) => moved)) / 10_000) * 1_000).toFixed(1)} µs`)
}
rmSync(folder, { recursive: true, force: true })
