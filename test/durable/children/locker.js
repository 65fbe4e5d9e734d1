// Holds the write lock of a store until it is told to let go, as a process does that is frozen inside a transaction: `{ store }`.
import { given, loadDriver, say, told } from './tutti.js'

const { openDatabase } = await import('../../../dist/stores/sqlite-driver.js')
const db = openDatabase(await loadDriver(), given.store, 'write')
db.exec('begin immediate')
say('held')
await told()
db.exec('commit')
db.close()
process.exit(0)
