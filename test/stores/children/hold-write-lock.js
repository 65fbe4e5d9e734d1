// Holds the write lock of a file until it is told to let go: `hold-write-lock.js path`.
import { loadDriver, openDatabase } from '../../../dist/stores/sqlite-driver.js'

const db = openDatabase(await loadDriver(), process.argv[2] ?? '', 'write')
db.exec('begin immediate')
console.log('held')
process.stdin.once('data', () => {
  db.exec('commit')
  db.close()
  process.exit(0)
})
