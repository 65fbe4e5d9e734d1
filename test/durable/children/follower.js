// Follows a run that another process executes to its end, and does nothing else: `{ store, run }`.
import { given, open, say } from './tutti.js'

const engine = await open({ store: given.store })
const run = await engine.run(given.run)
say('opened')
for await (const event of run.events()) if (event.type === 'run.succeeded') say(event.type)
await engine.close()
