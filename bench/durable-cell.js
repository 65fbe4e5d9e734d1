// One cell of bench/durable.js, in a process of its own: how long one kind of work takes on a fresh file.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open, topology } from 'tutti'
import { loadDriver } from '../dist/stores/sqlite-driver.js'

const [cell, durability, width = '10000', before = '0'] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'tutti-bench-'))
const path = join(folder, 'bench.db')

const later = () => new Promise((resolve) => setImmediate(resolve))

const chain = topology({
  name: 'chain',
  flows: ['Start -> A -> End'],
  agents: {
    A: async (turn) => {
      for (let index = 0; index < 1_000; index++) await turn.step('s', async () => index, { key: `s${index}` })
      return turn.finish('done')
    },
  },
})
const five = topology({
  name: 'five',
  flows: ['Start -> A -> End'],
  agents: {
    A: async (turn) => {
      for (let index = 0; index < 5; index++) await turn.step('s', async () => index, { key: `s${index}` })
      return turn.finish('done')
    },
  },
})
const wide = topology({
  name: 'wide',
  flows: ['Start -> H -> End', 'H <-> W'],
  agents: {
    H: {
      act: {
        request: (turn) => turn.fork(Array.from({ length: Number(width) }, (_, index) => ({ to: 'W', request: index }))),
        join: (turn, join) => turn.finish(join.values.length),
      },
    },
    W: async (turn) => {
      await later()
      return turn.reply(turn.request)
    },
  },
})

/** One INSERT in a transaction of its own for each step. */
async function floor(steps) {
  const driver = await loadDriver()
  const database = new driver.DatabaseSync(path)
  database.exec(
    `pragma journal_mode = wal; pragma synchronous = ${durability === 'power' ? 'full' : 'normal'}; create table step (id integer primary key, body text)`,
  )
  const insert = database.prepare('insert into step (body) values (?)')
  const from = performance.now()
  for (let index = 0; index < steps; index++) insert.run(JSON.stringify({ type: 'step', index }))
  const ms = performance.now() - from
  database.close()
  return ms
}

async function engine(work) {
  const tutti = await open({ store: path, durability })
  // What a process does first runs while its code is cold.
  for (let times = 0; times < Number(before); times++) await work(tutti)
  const from = performance.now()
  await work(tutti)
  const ms = performance.now() - from
  await tutti.close()
  return ms
}

const cells = {
  'floor-1000': () => floor(1_000),
  'floor-5000': () => floor(5_000),
  'floor-10000': () => floor(10_000),
  chain: () => engine((tutti) => tutti.execute(chain)),
  runs: () => engine((tutti) => Promise.all(Array.from({ length: 1_000 }, () => tutti.execute(five)))),
  wide: () => engine((tutti) => tutti.execute(wide)),
}

const ms = await cells[cell]()
console.log(JSON.stringify({ ms, rssMb: Math.round(process.resourceUsage().maxRSS / 1024) }))
rmSync(folder, { recursive: true, force: true })
