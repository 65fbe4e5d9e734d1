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

// Processor time, so that other work on the machine does not count.
function cpuMs() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

const shapes = { plain, meeting }
const [name, width] = process.argv.slice(2)

if (name !== undefined) {
  // One cell, in a process of its own: first as it comes, then warm.
  const from = cpuMs()
  play(shapes[name], Number(width))
  const cold = cpuMs() - from
  const plays = 10_000 / Number(width)
  let warm = Number.POSITIVE_INFINITY
  for (let round = 0; round < 12; round++) {
    const start = cpuMs()
    for (let index = 0; index < plays; index++) play(shapes[name], Number(width))
    warm = Math.min(warm, (cpuMs() - start) / plays)
  }
  console.log(JSON.stringify({ cold, warm }))
} else {
  for (const name of Object.keys(shapes)) {
    const cell = (width) =>
      JSON.parse(execFileSync(process.execPath, [fileURLToPath(import.meta.url), name, String(width)], { encoding: 'utf8' }))
    const small = cell(1_000)
    const large = cell(10_000)
    console.log(
      `${name.padEnd(8)} a process's first fan-out  1,000: ${small.cold.toFixed(1)} ms   10,000: ${large.cold.toFixed(1)} ms   ratio ${(large.cold / small.cold).toFixed(1)}`,
    )
    console.log(
      `${name.padEnd(8)} warm, again and again      1,000: ${small.warm.toFixed(1)} ms   10,000: ${large.warm.toFixed(1)} ms   ratio ${(large.warm / small.warm).toFixed(1)} (at most 12)   ${((large.warm * 1_000) / 10_000).toFixed(1)} µs a branch`,
    )
  }
}
