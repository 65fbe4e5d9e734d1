// The long versions of the tests, for as long as asked: `npm run soak -- 30` goes on for about half an hour (default 10 minutes). Each
// round of the searches has seeds of its own, taken from the day, and prints how to play it again; the attacks on stores and processes
// are made once.
import { spawnSync } from 'node:child_process'

const minutes = Number(process.argv[2] ?? 10)
if (!(minutes > 0)) {
  console.error('usage: npm run soak -- [minutes]')
  process.exit(2)
}
const until = Date.now() + minutes * 60_000
const day = Number(new Date().toISOString().slice(0, 10).replaceAll('-', ''))

/**
 * @param {string} what
 * @param {Record<string, string | number>} env
 * @param {...string} args
 */
function play(what, env, ...args) {
  const shown = Object.entries(env).map(([key, value]) => `${key}=${value}`)
  console.log(`${what}: ${shown.join(' ')} npx vitest run ${args.join(' ')}`)
  const { status } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--testTimeout=3600000', ...args], {
    stdio: 'inherit',
    env: { ...process.env, ...Object.fromEntries(Object.entries(env).map(([key, value]) => [key, String(value)])) },
  })
  if (status !== 0) process.exit(status ?? 1)
}

const attacked = ['test/stores', 'test/durable', 'test/agents', 'test/engine/codec.test.ts', 'test/graph/wide.test.ts']
play('stores, processes, large values and wide graphs', { TUTTI_SOAK: 'on' }, ...attacked)
for (let round = 0; round === 0 || Date.now() < until; round++) {
  const seed = day * 100 + round
  play('the kernel against the reference', { TUTTI_DIFFERENTIAL: '2000,12', TUTTI_SEED: seed }, 'test/reference/differential.test.ts')
  play('what is undone', { TUTTI_UNDO_DIFFERENTIAL: '1000,12', TUTTI_SEED: seed }, 'test/reference/differential.test.ts', '-t', 'undoes')
  play(
    'what graphs undo',
    { TUTTI_UNDO_GRAPHS: `${seed},2000,20` },
    'test/graph/differential.test.ts',
    'test/graph/undo.test.ts',
    '-t',
    'undo',
  )
  play('graphs against the reference', { TUTTI_GRAPHS: `${seed},4000,20` }, 'test/graph/differential.test.ts')
  play('the race check on Tutti itself', { TUTTI_EXPLORE: `${seed},150,60` }, 'test/explore/itself.test.ts')
  play('reports in every order', { TUTTI_REPORT_SEARCH: `${seed},1000,16` }, 'test/inspect/report.test.ts', '-t', 'property')
}
