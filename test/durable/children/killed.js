// Executes the house, or a rollback, on the store, and kills itself around a commit: `{ store, log, of?, kill?: { when, nth } }`.
import * as houses from './house.js'
import * as rollbacks from './rollback.js'
import { given, loadDriver, open, openConnection, say, storeOver, tutti, write } from './tutti.js'

const die = () => process.kill(process.pid, 'SIGKILL')
const { when = 'never', nth = 0 } = given.kill ?? {}
const options = /** @type {const} */ ({ durability: 'process' })
const connection = await openConnection(given.store, options)
let commits = 0
let isCommitting = false
const plain = connection.run.bind(connection)
connection.run = (sql, ...values) => {
  // Everything is written, and nothing is committed.
  if (when === 'inside' && isCommitting && commits === nth && sql === 'commit') die()
  return plain(sql, ...values)
}
const inner = storeOver(connection, await loadDriver(), options)
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
