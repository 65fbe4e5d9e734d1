export { type CheckStoreOptions, checkStore } from './check-store.js'
export { virtualClock } from './virtual-clock.js'
