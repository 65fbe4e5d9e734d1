export { virtualClock } from './virtual-clock.js'
