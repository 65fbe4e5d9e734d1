export { type Recording, record, replay } from '../models/cassette.js'
export { type AgentNames, type ScriptedReply, script } from '../models/script.js'
export { type CheckStoreOptions, checkStore } from './check-store.js'
export { virtualClock } from './virtual-clock.js'
