// How long it takes until `run.events()` in another process sees what this process has recorded: a run with a step every few milliseconds
// here, a follower there. Each step gives the time at which it returned; what is measured ends where the follower has its event in hand, so
// that the commit is part of it.
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { open, topology } from 'tutti'

const steps = 300
const betweenMs = 10
const now = () => performance.timeOrigin + performance.now()

const ticking = topology({
  name: 'ticking',
  flows: ['Start -> A -> End'],
  agents: {
    A: async (turn) => {
      for (let index = 0; index < steps; index++)
        await turn.step('tick', async () => {
          await pause(betweenMs)
          return now()
        })
      return turn.finish('done')
    },
  },
})

async function followed(path, id) {
  const tutti = await open({ store: path })
  const run = await tutti.run(id)
  const latencies = []
  // Following keeps no process alive; listening to its parent does.
  process.on('message', () => {})
  for await (const event of run.events()) {
    const seen = now()
    if (event.type === 'activity.completed') latencies.push(seen - event.value)
  }
  await tutti.close()
  process.send(latencies)
  process.disconnect()
}

async function measured() {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-bench-'))
  const path = join(folder, 'bench.db')
  const tutti = await open({ store: path })
  const run = await tutti.start(ticking)
  const follower = fork(fileURLToPath(import.meta.url), [path, run.id])
  const told = new Promise((resolve, reject) => {
    follower.on('message', resolve)
    follower.on('exit', (code) => reject(new Error(`the follower ended with ${code}`)))
  })
  await run.result()
  const latencies = await told
  await tutti.close()
  rmSync(folder, { recursive: true, force: true })
  return latencies
}

const [path, id] = process.argv.slice(2)
if (path !== undefined) await followed(path, id)
else {
  // What was there before it began to follow is not what it followed.
  const live = (await measured()).slice(steps / 2).sort((a, b) => a - b)
  const at = (share) => live[Math.floor(share * (live.length - 1))].toFixed(1)
  console.log(
    `events of another process: seen after ${at(0.5)} ms (median, at most 50), ${at(0.9)} ms (nine of ten), ${live.length} events`,
  )
}
