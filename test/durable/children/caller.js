// Does what it is told to runs of a store, each at the moment it is told, and says what came of it: `{ store, log, executes }`.
import { createInterface } from 'node:readline'
import { counted } from './counted.js'
import { given, open, say, tutti, TuttiError, write } from './tutti.js'

const definition = counted(tutti, write)
const engine = await open({ store: given.store, ...(given.executes && { definitions: [definition] }) })

/** @param {any} order */
async function obey({ act, run, ask, value, key, by, input, agent }) {
  if (act === 'start') return (await engine.start(definition, { key, input })).id
  if (agent !== undefined) return engine.agents[/** @type {'pause' | 'resume'} */ (act)](agent, { key, by })
  const handle = await engine.run(run)
  if (act === 'resume') return handle.resume({ key, by })
  if (act === 'answer') return handle.answer(ask, value, { key, by })
  if (act === 'pause') return handle.pause({ key, by })
  if (act === 'cancel') return handle.cancel({ key, by, reason: 'told to' })
  if (act === 'events') {
    const types = []
    for await (const event of handle.events({ after: value })) types.push(`${event.seq} ${event.type}`)
    return types
  }
  throw new Error(`what is ${act}?`)
}

say('opened')
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line)
  while (Date.now() < (order.at ?? 0));
  await obey(order).then(
    (done) => say({ done: done ?? null }),
    (error) => say({ code: TuttiError.is(error) ? error.code : String(error?.stack ?? error) }),
  )
}
await engine.close()
