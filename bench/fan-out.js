// What a fan-out costs the pure kernel, per branch, at growing widths: with a plain join, and with a rendezvous on the way.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { internalsOf } from '../dist/define/definition.js'
import { topology } from '../dist/define/topology.js'
import { decide } from '../dist/kernel/decide.js'
import { attemptOf, newState } from '../dist/kernel/state.js'

const idle = { act: (turn) => turn.fail('only its shape is used') }
const plain = shapeOf({ name: 'plain', flows: ['Start -> H -> End', 'H <-> A'], agents: { H: idle, A: idle } })
const meeting = shapeOf({
  name: 'meeting',
  flows: ['Start -> H -> End', 'H -> A', 'A -> C', 'C -> H'],
  joins: ['C'],
  agents: { H: idle, A: idle, C: idle },
})

function shapeOf(definition) {
  return internalsOf(topology(definition)).shape
}

function play(shape, width) {
  let state = newState
  const go = (command) => {
    const decision = decide(state, command, 1, null)
    if ('refusal' in decision) throw new Error(decision.refusal.message)
    state = decision.state
  }
  const act = (branch, action) => go({ type: 'turn.complete', ...attemptOf(state, branch), action })
  go({ type: 'run.start', runId: 'bench', nonce: 'n', shape, tags: {} })
  act('r', { type: 'fork', calls: Array.from({ length: width }, (_, index) => ({ to: 'A', request: index })) })
  for (let index = 0; index < width; index++)
    act(`r.${index}`, shape === meeting ? { type: 'invoke', to: 'C', request: index } : { type: 'reply', value: index })
  if (shape === meeting) act('r.0', { type: 'reply', value: 0 })
  act('r', { type: 'finish', output: 'done' })
  if (state.status !== 'succeeded') throw new Error(`it ${state.status}`)
}

/** Time on the wall, and of the processor: all threads, the collector's too. */
function now() {
  const { user, system } = process.cpuUsage()
  return { wall: performance.now(), cpu: (user + system) / 1_000 }
}

function timed(work) {
  const from = now()
  work()
  const to = now()
  return { wall: to.wall - from.wall, cpu: to.cpu - from.cpu }
}

const shapes = { plain, meeting }
const widths = { small: 1_000, large: 10_000 }
const [name, width] = process.argv.slice(2)

/** Both widths in turn in one process, ten small ones for each large one, so that each has its share of what the collector does. */
function inTurn(shape) {
  const sums = { small: { wall: 0, cpu: 0 }, large: { wall: 0, cpu: 0 } }
  const rounds = { warming: 8, counted: 24 }
  for (let round = 0; round < rounds.warming + rounds.counted; round++) {
    for (const [size, plays] of [
      ['small', 10],
      ['large', 1],
    ]) {
      const { wall, cpu } = timed(() => {
        for (let index = 0; index < plays; index++) play(shape, widths[size])
      })
      if (round < rounds.warming) continue
      sums[size].wall += wall / plays / rounds.counted
      sums[size].cpu += cpu / plays / rounds.counted
    }
  }
  return sums
}

/** A process of its own: first as it comes, then the best of twelve, which the narrow one may have between two collections. */
function byItself(shape, wide) {
  const cold = timed(() => play(shape, wide))
  const plays = widths.large / wide
  const best = { wall: Number.POSITIVE_INFINITY, cpu: Number.POSITIVE_INFINITY }
  for (let round = 0; round < 12; round++) {
    const { wall, cpu } = timed(() => {
      for (let index = 0; index < plays; index++) play(shape, wide)
    })
    best.wall = Math.min(best.wall, wall / plays)
    best.cpu = Math.min(best.cpu, cpu / plays)
  }
  return { cold, best }
}

if (width !== undefined) console.log(JSON.stringify(byItself(shapes[name], Number(width))))
else if (name !== undefined) console.log(JSON.stringify(inTurn(shapes[name])))
else {
  const aim = ' (at most 12)'
  const cell = (...args) => JSON.parse(execFileSync(process.execPath, [fileURLToPath(import.meta.url), ...args], { encoding: 'utf8' }))
  const line = (shape, what, small, large, wanted) =>
    console.log(
      `${shape.padEnd(8)} ${what.padEnd(38)} 1,000: ${small.toFixed(1)} ms   10,000: ${large.toFixed(1)} ms   ratio ${(large / small).toFixed(1)}${wanted}   ${((large * 1_000) / 10_000).toFixed(1)} µs a branch`,
    )
  const lines = (shape, what, small, large, wanted) => {
    line(shape, `${what}, on the wall`, small.wall, large.wall, wanted)
    line(shape, `${what}, all threads`, small.cpu, large.cpu, wanted)
  }
  for (const shape of Object.keys(shapes)) {
    const small = cell(shape, String(widths.small))
    const large = cell(shape, String(widths.large))
    lines(shape, "a process's first fan-out", small.cold, large.cold, '')
    lines(shape, 'warm, best of 12', small.best, large.best, aim)
    const warm = cell(shape)
    lines(shape, 'warm, in turn, mean', warm.small, warm.large, aim)
  }
}
