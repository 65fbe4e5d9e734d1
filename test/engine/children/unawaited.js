// A turn whose code waits for steps in a helper that nobody waits for when the turn is over.
import { open, topology } from '../../../dist/index.js'

const [how = ''] = process.argv.slice(2)
const nap = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))
const hear = (/** @type {unknown} */ reason) => process.stdout.write(`heard ${String(reason)}\n`)
if (how === 'listened once') process.once('unhandledRejection', hear)
const tutti = await open({ store: 'memory:' })
const other = await open({ store: 'memory:' })
const helping = topology({
  name: 'helping',
  flows: ['Start -> A -> End'],
  agents: {
    A: async (turn) => {
      const load = async () => await turn.step('a', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)))
      const loading = load()
      await turn.step('b', async () => {
        process.stdout.write('begun\n')
        if (how === 'throws') throw new Error('b is down')
        await nap(60)
      })
      return turn.finish(await loading)
    },
  },
})
if (how === 'listens') process.on('unhandledRejection', hear)
if (how === 'listened once') {
  void Promise.reject(new Error('of somebody else'))
  await nap(20)
}
const run = await tutti.start(helping)
await nap(20)
if (how !== 'throws') await run.cancel()
if (how === 'foreign' || how === 'listens') void Promise.reject(new Error('of somebody else'))
await nap(20)
process.stdout.write(`${(await run.result()).status}\n`)
await other.close()
await tutti.close()
await nap(20)
process.stdout.write(`${process.listenerCount('unhandledRejection')} left\n`)
if (how === 'closed') void Promise.reject(new Error('of somebody else'))
