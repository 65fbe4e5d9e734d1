// Runs a graph over twenty items on a file, writing a line for each body that was executed; one item hangs until somebody ends it.
import { appendFileSync, existsSync } from 'node:fs'
import { graph, open } from '../../../dist/index.js'

const [store = '', log = '', go = ''] = process.argv.slice(2)
const definition = graph('items')
  .step('list', { run: () => Array.from({ length: 20 }, (_, index) => index) })
  .step('work', {
    after: ['list'],
    each: ({ steps }) => steps.list,
    concurrency: 5,
    run: async ({ item, index }) => {
      appendFileSync(log, `item ${index}\n`)
      // Everything after the twelfth waits for a sign, so that there is a middle to be killed in.
      while (index >= 12 && !existsSync(go)) await new Promise((resolve) => setTimeout(resolve, 5))
      return item * 2
    },
  })
  .step('sum', { after: ['work'], run: ({ steps }) => steps.work.reduce((a, b) => a + b, 0) })
  .output(({ steps }) => steps.sum)

const tutti = await open({ store, definitions: [definition] })
await tutti.start(definition, { id: 'run', key: 'once' })
process.stdout.write(`${await (await tutti.run('run')).output()}\n`)
await tutti.close()
