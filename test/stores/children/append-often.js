// Appends to a run that others append to as well, each time after what it has just read: `append-often.js path name times`.
import { sqliteStore } from '../../../dist/stores/sqlite.js'

const [path = '', name = '', times = '1'] = process.argv.slice(2)
const store = await sqliteStore(path, { durability: 'process' })
const by = await store.join({ nonce: name })
let conflicts = 0
for (let done = 0; done < Number(times); ) {
  const head = (await store.load('shared', { limit: 0 }))?.row.head ?? 0
  const rows = [{ seq: head + 1, n: 1, body: JSON.stringify(`${name} ${done}`) }]
  const [verdict] = await store.commit([{ run: 'shared', expect: head, head: head + 1, by, at: 1, rows }])
  if (verdict?.ok) done++
  else conflicts++
}
await store.leave(by, 0)
await store.close()
console.log(conflicts)
