// Joins a store, owns a run, and stays until it is killed: `join-and-wait.js path run`.
import { sqliteStore } from '../../../dist/stores/sqlite.js'

const [path = '', run = ''] = process.argv.slice(2)
const store = await sqliteStore(path, { durability: 'process' })
const by = await store.join({ nonce: run })
const create = { definition: 'd', version: '1', tags: {} }
await store.commit([{ run, create, expect: 0, head: 1, by, at: 1, own: 'take', rows: [{ seq: 1, n: 1, body: '1' }] }])
console.log(by)
setInterval(() => store.moved(by), 60_000)
