import { checkStore } from 'tutti/testing'
import { afterAll, describe, test } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { Folder } from './folder.js'

const folder = new Folder()
afterAll(() => folder[Symbol.dispose]())

for (const durability of ['process', 'power'] as const) {
  let path = ''
  const make = async () => sqliteStore((path = folder.file()), { durability })
  checkStore(`in SQLite, durable against the loss of ${durability}`, make, {
    describe,
    test,
    again: async () => sqliteStore(path, { durability }),
  })
}
