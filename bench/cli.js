// How long the command line takes to start, beside the bare start of Node: `npm run bench`, or `node bench/cli.js [runs]`.
// The best of several is printed: what else the machine does only ever adds.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from '../dist/stores/sqlite.js'

const runs = Number(process.argv[2] ?? 10_000)
const root = fileURLToPath(new URL('..', import.meta.url))
const main = join(root, 'bundle/cli/main.js')
const one = `import { topology } from 'tutti'
export default topology({ name: 'one', flows: ['Start -> A -> End'], agents: { A: async (turn) => turn.finish('done') } })
`
const folder = mkdtempSync(join(tmpdir(), 'tutti-bench-'))
const file = join(folder, 'tutti.db')

try {
  await fill(file, runs)
  const node = best(['-e', '0'])
  report('node -e 0', node, node)
  report("import 'tutti'", best(['--input-type=module', '-e', "import 'tutti'"]), node)
  report('tutti --version', best([main, '--version']), node, 250)
  report(`tutti ls, of ${runs} runs`, best([main, 'ls', '--store', file]), node, 500)
  report(`tutti ls --limit ${runs} --json`, best([main, 'ls', '--store', file, '--limit', String(runs), '--json']), node)
  report('tutti asks <the beginning of an id>', best([main, 'asks', 'run-00077', '--store', file]), node)
  for (const workflow of ['workflow.mjs', 'workflow.ts'].map((name) => join(folder, name))) {
    writeFileSync(workflow, one)
    report(`tutti run ${basename(workflow)}`, best([main, 'run', workflow, '--store', join(folder, 'own.db')]), node)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/**
 * Runs as they are when they have ended, without having been executed.
 * @param {string} path
 * @param {number} count
 */
async function fill(path, count) {
  const store = await sqliteStore(path, { durability: 'process' })
  const by = await store.join({ nonce: 'bench' })
  const create = { definition: 'bench', version: '1', tags: { 'tutti.file': '/somewhere/workflow.ts', 'tutti.export': 'default' } }
  for (let from = 0; from < count; from += 500)
    await store.commit(
      Array.from({ length: Math.min(500, count - from) }, (_, index) => ({
        run: `run-${String(from + index).padStart(5, '0')}`,
        create,
        expect: 0,
        head: 1,
        by,
        rows: [{ seq: 1, n: 1, body: '[{"seq":1,"at":1,"type":"run.started"}]' }],
        at: from + index,
        status: 'succeeded',
        ended: true,
      })),
    )
  await store.leave(by, count)
  await store.close()
}

/**
 * The shortest of several, in milliseconds.
 * @param {readonly string[]} args
 */
function best(args) {
  const times = Array.from({ length: 9 }, () => {
    const from = performance.now()
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] })
    if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}: ${stderr}`)
    return performance.now() - from
  })
  return Math.min(...times)
}

/**
 * @param {string} what
 * @param {number} ms
 * @param {number} node
 * @param {number} [limit]
 */
function report(what, ms, node, limit) {
  const wanted = limit === undefined ? '' : `   wanted: under ${limit} ms`
  console.log(`${what.padEnd(42)} ${ms.toFixed(0).padStart(6)} ms   ${(ms / node).toFixed(1)} times the bare start${wanted}`)
}
