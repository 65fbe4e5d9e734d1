// How many schedules a second the race check plays, for a fork of five with two turns each: on the kernel alone, and through real async
// agents on the engine. Beside each stands an empty loop of the same length in the same run, so that machines can be compared. Both are
// told by the clock on the wall and in processor time, in which other work on the machine does not count.
import { internalsOf } from '../dist/define/definition.js'
import { topology } from '../dist/define/topology.js'
import { decide } from '../dist/kernel/decide.js'
import { newState, requestsOf } from '../dist/kernel/state.js'
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

/** What something takes, by both clocks. */
async function timed(work) {
  const from = { wall: performance.now(), cpu: process.cpuUsage() }
  await work()
  const { user, system } = process.cpuUsage(from.cpu)
  return { wall: performance.now() - from.wall, cpu: (user + system) / 1_000 }
}

/** The least of several rounds, by each clock. */
async function leastOf(rounds, work) {
  const least = { wall: Number.POSITIVE_INFINITY, cpu: Number.POSITIVE_INFINITY }
  for (let round = 0; round < rounds; round++) {
    const { wall, cpu } = await timed(() => work(round))
    least.wall = Math.min(least.wall, wall)
    least.cpu = Math.min(least.cpu, cpu)
  }
  return least
}

const rate = (count, ms) => told(Math.round((count * 1_000) / ms))
const each = (count, ms) => `${((ms / count) * 1_000).toFixed(1)} µs each`
const ratio = (ms, emptyMs) => told(Math.round(ms / Math.max(0.01, emptyMs)))

function tell(what, how, schedules, took, loop, empty) {
  console.log(`${what}  ${told(schedules)} schedules, ${how}, beside an empty loop of ${loop}`)
  for (const [clock, name] of [
    ['wall', 'wall time     '],
    ['cpu', 'processor time'],
  ])
    console.log(
      `  ${name}  ${rate(schedules, took[clock])} schedules a second   ${each(schedules, took[clock])}   the loop ${empty[clock].toFixed(2)} ms, ratio ${ratio(took[clock], empty[clock])}`,
    )
}

const told = (number) => number.toLocaleString('en-US')

async function onKernel() {
  const { shape, code } = internalsOf(definition)
  const begun = decide(newState, { type: 'run.start', runId: 'bench', nonce: 'n', shape, tags: {} }, 1, code)
  const actions = {
    Hub: (branch) =>
      branch.message.kind === 'join'
        ? { type: 'finish', output: branch.message.join.slots.map((slot) => slot.value) }
        : { type: 'fork', calls: five.map((request) => ({ to: 'First', request })) },
    First: (branch) => ({ type: 'invoke', to: 'Second', request: requestsOf(branch)[0].value }),
    Second: (branch) => ({ type: 'reply', value: requestsOf(branch)[0].value }),
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
  let found = { schedules: 0, decisions: 0 }
  const took = await leastOf(3, () => {
    found = searchKernel(play, begun.state, ({ state }) => outcomes.add(JSON.stringify(state.outcome)))
  })
  if (outcomes.size !== 1) throw new Error(`${outcomes.size} outcomes`)
  let sum = 0
  const empty = await leastOf(3, () => {
    for (let step = 0; step < found.decisions; step++) sum += step % 7
  })
  if (sum < 0) throw new Error('never')
  tell('kernel', 'every order', found.schedules, took, `${told(found.decisions)} steps`, empty)
}

async function throughAgents() {
  const search = new Search(settingFor(definition, { invariants: false }), Number.POSITIVE_INFINITY, {
    bags: new Set(),
    observe: undefined,
  })
  const schedules = 1_000
  let steps = 0
  const took = await leastOf(8, async (round) => {
    steps = 0
    for (let index = 0; index < schedules; index++) {
      const random = new Random(`bench ${round} ${index}`)
      const played = await search.play(({ count }) => ({ take: random.below(count) }))
      steps += played.taken.length
    }
  })
  if (search.outcomes.length !== 1) throw new Error(`${search.outcomes.length} outcomes`)
  const empty = await leastOf(3, async () => {
    for (let step = 0; step < steps; step++) await new Promise((resolve) => setImmediate(resolve))
  })
  tell('agents', 'at random', schedules, took, `${told(steps)} macrotasks`, empty)
}

await onKernel()
await throughAgents()
