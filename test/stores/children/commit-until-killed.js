// Appends to one run for ever, in batches with other runs, and says each head that was acknowledged: `commit-until-killed.js path`.
import { writeSync } from 'node:fs'
import { sqliteStore } from '../../../dist/stores/sqlite.js'

const store = await sqliteStore(process.argv[2] ?? '', { durability: 'process' })
const by = await store.join({ nonce: 'killed' })
const create = { definition: 'd', version: '1', tags: { pid: String(process.pid) } }
let head = (await store.load('main'))?.row.head ?? 0
for (let i = 0; ; i++) {
  const rows = [{ seq: head + 1, n: 1, body: JSON.stringify('x'.repeat(i % 3_000)) }]
  const main = { run: 'main', ...(head === 0 && { create }), expect: head, head: head + 1, by, at: 1, rows }
  const side = {
    run: `side-${head}`,
    create,
    expect: 0,
    head: 1,
    by,
    at: 1,
    rows: [{ seq: 1, n: 1, body: '1' }],
    marks: [{ kind: 'm', key: 'k', body: '1' }],
  }
  const verdicts = await store.commit([main, side])
  if (!verdicts.every(({ ok }) => ok)) throw new Error(JSON.stringify(verdicts))
  head++
  writeSync(1, `${head}\n`)
}
