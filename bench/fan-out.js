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
const [name, width] = process.argv.slice(2)

if (name !== undefined) {
  // One cell, in a process of its own: first as it comes, then warm.
  const cold = timed(() => play(shapes[name], Number(width)))
  const plays = 10_000 / Number(width)
  const warm = { wall: Number.POSITIVE_INFINITY, cpu: Number.POSITIVE_INFINITY }
  for (let round = 0; round < 12; round++) {
    const { wall, cpu } = timed(() => {
      for (let index = 0; index < plays; index++) play(shapes[name], Number(width))
    })
    warm.wall = Math.min(warm.wall, wall / plays)
    warm.cpu = Math.min(warm.cpu, cpu / plays)
  }
  console.log(JSON.stringify({ cold, warm }))
} else {
  const cell = (shape, wide) =>
    JSON.parse(execFileSync(process.execPath, [fileURLToPath(import.meta.url), shape, String(wide)], { encoding: 'utf8' }))
  const line = (shape, what, small, large, aim) =>
    console.log(
      `${shape.padEnd(8)} ${what.padEnd(38)} 1,000: ${small.toFixed(1)} ms   10,000: ${large.toFixed(1)} ms   ratio ${(large / small).toFixed(1)}${aim}   ${((large * 1_000) / 10_000).toFixed(1)} µs a branch`,
    )
  for (const shape of Object.keys(shapes)) {
    const small = cell(shape, 1_000)
    const large = cell(shape, 10_000)
    line(shape, "a process's first fan-out, on the wall", small.cold.wall, large.cold.wall, '')
    line(shape, "a process's first fan-out, processor", small.cold.cpu, large.cold.cpu, '')
    line(shape, 'warm, again and again, on the wall', small.warm.wall, large.warm.wall, ' (at most 12)')
    line(shape, 'warm, again and again, processor', small.warm.cpu, large.warm.cpu, ' (at most 12)')
  }
}
