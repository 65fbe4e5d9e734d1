// What a fan-out costs the pure kernel, per branch, at growing widths: with a plain join, and with a rendezvous on the way.
import { internalsOf } from '../dist/define/definition.js'
import { topology } from '../dist/define/topology.js'
import { decide } from '../dist/kernel/decide.js'
import { newState } from '../dist/kernel/state.js'

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
  const act = (branch, action) => go({ type: 'turn.complete', ...state.turns.get(branch), action })
  go({ type: 'run.start', runId: 'bench', nonce: 'n', shape, tags: {} })
  act('r', { type: 'fork', calls: Array.from({ length: width }, (_, index) => ({ to: 'A', request: index })) })
  for (let index = 0; index < width; index++)
    act(`r.${index}`, shape === meeting ? { type: 'invoke', to: 'C', request: index } : { type: 'reply', value: index })
  if (shape === meeting) act('r.0', { type: 'reply', value: 0 })
  act('r', { type: 'finish', output: 'done' })
  if (state.status !== 'succeeded') throw new Error(`it ${state.status}`)
}

// Ten of the small ones in a row, so that both widths pay for their own garbage; the best of twelve rounds, taken in turns.
function timed(shape) {
  const best = { 1_000: Number.POSITIVE_INFINITY, 10_000: Number.POSITIVE_INFINITY }
  for (let round = 0; round < 12; round++) {
    for (const width of [1_000, 10_000]) {
      const plays = 10_000 / width
      const from = cpuMs()
      for (let index = 0; index < plays; index++) play(shape, width)
      best[width] = Math.min(best[width], (cpuMs() - from) / plays)
    }
  }
  return best
}

for (const shape of [plain, meeting]) {
  const { 1_000: small, 10_000: large } = timed(shape)
  console.log(
    `${shape.name.padEnd(8)} 1,000: ${small.toFixed(1)} ms   10,000: ${large.toFixed(1)} ms   ratio ${(large / small).toFixed(1)} (at most 12)   ${((large * 1_000) / 10_000).toFixed(1)} µs a branch`,
  )
}

// Processor time, so that other work on the machine does not count.
function cpuMs() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
