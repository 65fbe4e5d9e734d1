// One agent whose model is at the address that is given; its tools write a line for each time that they were executed.
import { appendFileSync } from 'node:fs'
import { open, tool, topology } from '../../../dist/index.js'
import { z } from 'zod'

const [store = '', log = '', url = '', hangs = ''] = process.argv.slice(2)
const input = z.object({ item: z.string() })
const book = tool({
  description: 'Books.',
  input,
  run: ({ item }) => {
    appendFileSync(log, `booked ${item}\n`)
    return `${item} is booked`
  },
})
const send = tool({
  description: 'Sends, once and for all.',
  input,
  idempotent: false,
  run: async ({ item }) => {
    appendFileSync(log, `sent ${item}\n`)
    if (hangs === 'hangs') await new Promise(() => setInterval(() => {}, 1_000))
    return `${item} is sent`
  },
})
const agency = topology({ name: 'agency', flows: ['Start -> A -> End'], agents: { A: { model: `${url}#tiny`, tools: { book, send } } } })

const tutti = await open({ store, definitions: [agency] })
const run = await tutti.start(agency, { id: 'run', key: 'once', input: 'a trip' })
process.stdout.write(`${JSON.stringify(await run.output())}\n`)
await tutti.close()
