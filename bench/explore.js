// How many schedules a second the race check plays, for a fork of five with two turns each: on the kernel alone, and through real async
// agents on the engine. Beside each stands an empty loop of the same length in the same run, so that machines can be compared.
import { internalsOf } from '../dist/define/definition.js'
import { topology } from '../dist/define/topology.js'
import { decide } from '../dist/kernel/decide.js'
import { newState } from '../dist/kernel/state.js'
import { searchKernel } from '../dist/testing/explore/kernel-search.js'
import { Random } from '../dist/testing/explore/random.js'
import { Search } from '../dist/testing/explore/search.js'
import { settingFor } from '../dist/testing/explore/explore.js'

const five = [0, 1, 2, 3, 4]
const definition = topology({
  name: 'five',
  flows: ['Start -> Hub -> End', 'Hub -> First', 'First -> Second', 'Second -> Hub'],
  agents: {
    Hub: {
      act: {
        request: (turn) => turn.fork(five.map((request) => ({ to: 'First', request }))),
        join: (turn, join) => turn.finish(join.slots.map((slot) => slot.value)),
      },
    },
    First: { act: async (turn) => turn.invoke('Second', turn.request) },
    Second: { act: async (turn) => turn.reply(turn.request) },
  },
})

/** Processor time, so that other work on the machine does not count. */
function cpuMs() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

const rate = (count, ms) => Math.round((count * 1_000) / ms)
const told = (number) => number.toLocaleString('en-US')

function onKernel() {
  const { shape, code } = internalsOf(definition)
  const begun = decide(newState, { type: 'run.start', runId: 'bench', nonce: 'n', shape, tags: {} }, 1, code)
  const actions = {
    Hub: (branch) =>
      branch.message.kind === 'join'
        ? { type: 'finish', output: branch.message.join.slots.map((slot) => slot.value) }
        : { type: 'fork', calls: five.map((request) => ({ to: 'First', request })) },
    First: (branch) => ({ type: 'invoke', to: 'Second', request: branch.requests[0].value }),
    Second: (branch) => ({ type: 'reply', value: branch.requests[0].value }),
  }
  const play = {
    code,
    complete: (state, { branch, agent, turn, attempt }) => ({
      type: 'turn.complete',
      branch,
      agent,
      turn,
      attempt,
      action: actions[agent](state.branches.get(branch)),
    }),
  }
  const outcomes = new Set()
  let best = { schedules: 0, decisions: 0, ms: Number.POSITIVE_INFINITY }
  for (let round = 0; round < 3; round++) {
    const from = cpuMs()
    const { schedules, decisions } = searchKernel(play, begun.state, ({ state }) => outcomes.add(JSON.stringify(state.outcome)))
    const ms = cpuMs() - from
    if (ms < best.ms) best = { schedules, decisions, ms }
  }
  if (outcomes.size !== 1) throw new Error(`${outcomes.size} outcomes`)
  const from = cpuMs()
  let sum = 0
  for (let step = 0; step < best.decisions; step++) sum += step % 7
  const emptyMs = Math.max(0.01, cpuMs() - from)
  if (sum < 0) throw new Error('never')
  console.log(
    `kernel  ${told(best.schedules)} schedules, every order   ${told(rate(best.schedules, best.ms))} schedules a second   ${((best.ms / best.schedules) * 1_000).toFixed(1)} µs each   an empty loop of ${told(best.decisions)} steps: ${emptyMs.toFixed(2)} ms, ratio ${(best.ms / emptyMs).toFixed(0)}`,
  )
}

async function throughAgents() {
  const search = new Search(settingFor(definition, { invariants: false }), Number.POSITIVE_INFINITY, {
    bags: new Set(),
    observe: undefined,
  })
  const schedules = 1_000
  let best = { ms: Number.POSITIVE_INFINITY, steps: 0 }
  for (let round = 0; round < 5; round++) {
    let steps = 0
    const from = cpuMs()
    for (let index = 0; index < schedules; index++) {
      const random = new Random(`bench ${round} ${index}`)
      const played = await search.play(({ count }) => ({ take: random.below(count) }))
      steps += played.taken.length
    }
    const ms = cpuMs() - from
    if (ms < best.ms) best = { ms, steps }
  }
  if (search.outcomes.length !== 1) throw new Error(`${search.outcomes.length} outcomes`)
  const from = cpuMs()
  for (let step = 0; step < best.steps; step++) await new Promise((resolve) => setImmediate(resolve))
  const emptyMs = cpuMs() - from
  console.log(
    `agents  ${told(schedules)} schedules, at random   ${told(rate(schedules, best.ms))} schedules a second   ${((best.ms / schedules) * 1_000).toFixed(0)} µs each   an empty loop of ${told(best.steps)} macrotasks: ${emptyMs.toFixed(1)} ms, ratio ${(best.ms / emptyMs).toFixed(1)}`,
  )
}

onKernel()
await throughAgents()
