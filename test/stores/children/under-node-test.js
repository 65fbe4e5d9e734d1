import { checkStore } from '../../../dist/testing/index.js'
import { memoryStore } from '../../../dist/stores/memory.js'

// What somebody writes who tests with node:test.
checkStore('in memory', async () => memoryStore())
