// Tries to open a store without the rights of an administrator, and says what came of it: `open-as-nobody.js path`.
import { sqliteStore } from '../../../dist/stores/sqlite.js'
import { loadDriver } from '../../../dist/stores/sqlite-driver.js'

await loadDriver()
if (process.getuid?.() === 0) {
  process.setgid?.(65534)
  process.setuid?.(65534)
}
try {
  await (await sqliteStore(process.argv[2] ?? '', { durability: 'process' })).close()
  console.log('opened')
} catch (error) {
  const { code, hint, message } = /** @type {{ code?: string, hint?: string, message?: string }} */ (error)
  console.log(`${code} ${hint === undefined ? 'no hint' : 'hint'} ${message}`)
}
