// Executes the house, or a rollback, on the store, and kills itself around a commit: `{ store, log, of?, kill?: { when, nth } }`.
import * as houses from './house.js'
import * as rollbacks from './rollback.js'
import { Connection, given, loadDriver, open, openConnection, openDatabase, say, storeOver, tutti, write } from './tutti.js'

const die = () => process.kill(process.pid, 'SIGKILL')
const { when = 'never', nth = 0 } = given.kill ?? {}
const options = /** @type {const} */ ({ durability: 'process' })
let commits = 0
let isCommitting = false
// Something is written, and nothing is committed: an event is in its table, or all is done but the end of the transaction.
const inside = () => {
  if (when === 'inside' && isCommitting && commits === nth) die()
}
const connection = await openConnection(given.store, options)
const db = openDatabase(await loadDriver(), given.store, 'write')
db.function('inside', { varargs: true }, () => {
  inside()
  return null
})
db.exec('pragma synchronous = normal')
for (const table of ['batched', 'alone'])
  db.exec(`create temp trigger ${table}_written after insert on main.${table} begin select inside(); end`)
const watched = new Connection(db, given.store, 10_000)
const plain = watched.do.bind(watched)
watched.do = (sql, ...values) => {
  if (sql === 'commit') inside()
  plain(sql, ...values)
}
connection.close()
const inner = storeOver(watched, await loadDriver(), options)
const store = {
  ...inner,
  /** @type {typeof inner.commit} */
  commit: async (batch) => {
    commits++
    if (when === 'before' && commits === nth) die()
    isCommitting = true
    const verdicts = await inner.commit(batch)
    isCommitting = false
    if (when === 'after' && commits === nth) die()
    return verdicts
  },
}
say('opened')
const definition = given.of === 'rollback' ? rollbacks.rollback(tutti, write) : houses.house(tutti, write)
const engine = await open({ store, definitions: [definition] })
const result = given.of === 'rollback' ? await rollbacks.toTheEnd(engine, definition) : await houses.toTheEnd(engine, definition, write)
say({ commits, output: result.status === 'succeeded' ? result.output : result })
await engine.close()
await store.close()
