// What durability costs: each kind of work against one INSERT in its own transaction per step, on the same file system and with the same
// `synchronous`. A process per cell, each cell three times, the best of them; ratios within this run.
//
// How large the ratios are depends on what a transaction costs where they are taken. `node bench/durable.js 2` plays a file system on which
// each write and each lock takes two microseconds longer, for the floor and for the engine alike (Linux, with a C compiler).
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const besideThis = (name) => fileURLToPath(new URL(name, import.meta.url))
const [longerUs = '0', ...more] = process.argv.slice(2)
if (!/^\d+(\.\d+)?$/.test(longerUs) || more.length > 0) {
  console.error('usage: node bench/durable.js [how many microseconds longer each write and lock of a file takes]')
  process.exit(2)
}

const scratch = mkdtempSync(join(tmpdir(), 'tutti-bench-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))
const env = { ...process.env, ...(Number(longerUs) > 0 && slower(Number(longerUs))) }

function slower(us) {
  const library = join(scratch, 'file-calls.so')
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, besideThis('file-calls.c'), '-ldl'], { stdio: 'inherit' })
  console.log(`each write and each lock of a file takes ${us} µs longer`)
  return { LD_PRELOAD: library, FILE_CALL_NS: String(Math.round(us * 1_000)) }
}

function best(...args) {
  const cell = () => JSON.parse(execFileSync(process.execPath, [besideThis('durable-cell.js'), ...args], { encoding: 'utf8', env }))
  const runs = Array.from({ length: 3 }, cell)
  return runs.sort((a, b) => a.ms - b.ms)[0]
}

const targets = { power: { chain: 1.5, runs: 0.25, wide: 0.15 }, process: { chain: 4, runs: 2, wide: 1 } }
const steps = { chain: 1_000, runs: 5_000, wide: 10_000 }
const words = { chain: 'a chain of 1,000 steps', runs: '1,000 runs of 5 steps', wide: 'a fan-out of 10,000' }

for (const durability of ['power', 'process']) {
  for (const cell of ['chain', 'runs', 'wide']) {
    const floor = best(`floor-${steps[cell]}`, durability)
    const own = best(cell, durability)
    // The same as the sixth of its kind in its process: what a worker that stays gives.
    const warm = best(cell, durability, '10000', '5')
    const [ratio, warmRatio] = [own, warm].map(({ ms }) => (ms / floor.ms).toFixed(2))
    const each = ((floor.ms * 1_000) / steps[cell]).toFixed(1)
    console.log(
      `${durability.padEnd(8)} ${words[cell].padEnd(23)} ${own.ms.toFixed(0).padStart(5)} ms, floor ${floor.ms.toFixed(0).padStart(5)} ms (${each} µs each), ` +
        `ratio ${ratio} (at most ${targets[durability][cell]}), ${own.rssMb} MB; once warm ${warm.ms.toFixed(0)} ms, ${warmRatio}`,
    )
  }
}
const half = best('wide', 'process', '5000')
const whole = best('wide', 'process', '10000')
console.log(
  `fan-out of 5,000: ${half.ms.toFixed(0)} ms, of 10,000: ${whole.ms.toFixed(0)} ms, ratio ${(whole.ms / half.ms).toFixed(2)} (linear is 2)`,
)
