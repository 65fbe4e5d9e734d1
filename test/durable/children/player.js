// Starts runs of a play and executes them, until it is killed or they are over: `{ store, log, play, options, ids }`.
import { plays } from './plays.js'
import { given, open, say, tutti, write } from './tutti.js'

const die = () => process.kill(process.pid, 'SIGKILL')
const make = plays[given.play]
const definition = make(tutti, write, { die, ...given.options })
const engine = await open({ store: given.store, definitions: [definition] })
say('opened')
const runs = await Promise.all(given.ids.map((/** @type {string} */ id) => engine.start(definition, { id, key: `start ${id}` })))
const results = await Promise.all(runs.map((run) => run.result()))
say(results.map((result) => (result.status === 'succeeded' ? result.output : result)))
await engine.close()
