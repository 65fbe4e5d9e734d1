import { checkStore } from 'tutti/testing'
import { describe, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'

// One store in memory is shared by handing it around: its second handle is itself.
let store = memoryStore()
checkStore('in memory', async () => (store = memoryStore()), { describe, test, again: async () => store })
