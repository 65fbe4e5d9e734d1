// Opens a store, commits some runs of its own and leaves: `open-and-commit.js path name runs [start time]`.
import { setTimeout } from 'node:timers/promises'
import { sqliteStore } from '../../../dist/stores/sqlite.js'

const [path = '', name = '', runs = '1', start = '0'] = process.argv.slice(2)
await setTimeout(Math.max(0, Number(start) - Date.now()))
const store = await sqliteStore(path, { durability: 'process' })
const by = await store.join({ nonce: name })
const create = { definition: 'd', version: '1', tags: {} }
for (let i = 0; i < Number(runs); i++) {
  const rows = [{ seq: 1, n: 1, body: '"started"' }]
  const [verdict] = await store.commit([{ run: `${name}-${i}`, create, expect: 0, head: 1, by, at: 1, rows }])
  if (!verdict?.ok) throw new Error(JSON.stringify(verdict))
}
await store.leave(by, 0)
await store.close()
console.log('done')
