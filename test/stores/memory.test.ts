import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { checkStore } from 'tutti/testing'
import { expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory.js'

// With a name and a way to make one, it goes to the runner that calls.
checkStore('in memory, made anew', async () => memoryStore())

// One store in memory is shared by handing it around: its second handle is itself.
let store = memoryStore()
checkStore('in memory', async () => (store = memoryStore()), { again: async () => store })

test('a store is checked under node:test as it is here', () => {
  const file = fileURLToPath(new URL('./children/under-node-test.js', import.meta.url))
  const said = execFileSync(process.execPath, ['--test', '--test-reporter=tap', file], { encoding: 'utf8' })
  expect(said).toMatch(/# Subtest: the store in memory\n/)
  expect(said).toMatch(/# pass [1-9]\d+\n# fail 0\n/)
})
