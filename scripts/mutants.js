// Plants every mutant in a copy of what was built, and prints what kills it and after how many schedules.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const { status } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', 'test/mutants', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, TUTTI_MUTANTS: 'on' },
})
process.exit(status ?? 1)
