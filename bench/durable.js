// What durability costs: each kind of work against one INSERT in its own transaction per step, on the same file system and with the same
// `synchronous`. A process per cell, each cell three times, the best of them; ratios within this run.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const cellPath = fileURLToPath(new URL('durable-cell.js', import.meta.url))

function best(...args) {
  const runs = Array.from({ length: 3 }, () => JSON.parse(execFileSync(process.execPath, [cellPath, ...args], { encoding: 'utf8' })))
  return runs.sort((a, b) => a.ms - b.ms)[0]
}

const targets = { power: { chain: 1.5, runs: 0.25, wide: 0.15 }, process: { chain: 4, runs: 2, wide: 1 } }
const floors = { chain: 'floor-1000', runs: 'floor-5000', wide: 'floor-10000' }
const words = { chain: 'a chain of 1,000 steps', runs: '1,000 runs of 5 steps', wide: 'a fan-out of 10,000' }

for (const durability of ['power', 'process']) {
  for (const cell of ['chain', 'runs', 'wide']) {
    const floor = best(floors[cell], durability)
    const own = best(cell, durability)
    const ratio = own.ms / floor.ms
    console.log(
      `${durability.padEnd(8)} ${words[cell].padEnd(24)} ${own.ms.toFixed(0).padStart(6)} ms, floor ${floor.ms.toFixed(0).padStart(6)} ms, ratio ${ratio.toFixed(2)} (at most ${targets[durability][cell]}), ${own.rssMb} MB`,
    )
  }
}
// The same as the sixth of its kind in its process: what a worker that stays gives. No aim was set for it.
for (const cell of ['chain', 'runs', 'wide']) {
  const floor = best(floors[cell], 'process')
  const own = best(cell, 'process', '10000', '5')
  console.log(`process  ${words[cell].padEnd(24)} ${own.ms.toFixed(0).padStart(6)} ms once warm, ratio ${(own.ms / floor.ms).toFixed(2)}`)
}
const half = best('wide', 'process', '5000')
const whole = best('wide', 'process', '10000')
console.log(
  `fan-out of 5,000: ${half.ms.toFixed(0)} ms, of 10,000: ${whole.ms.toFixed(0)} ms, ratio ${(whole.ms / half.ms).toFixed(2)} (linear is 2)`,
)
