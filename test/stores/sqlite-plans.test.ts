import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ListFilter } from '../../src/engine/store.js'
import type { Connection } from '../../src/stores/sqlite-connection.js'
import { listQueries } from '../../src/stores/sqlite-list.js'
import { openConnection } from '../../src/stores/sqlite-open.js'
import { sql } from '../../src/stores/sqlite-statements.js'
import { Folder } from './folder.js'

const folder = new Folder()
let connection: Connection
beforeAll(async () => {
  connection = await openConnection(folder.file(), { durability: 'process' })
})
afterAll(() => {
  connection.close()
  folder[Symbol.dispose]()
})

const planOf = (statement: string): string[] =>
  connection.all<{ detail: string }>(`explain query plan ${statement}`).map(({ detail }) => detail)

/** What reads a whole table on purpose: there are never many workers. */
const scanned: readonly string[] = [sql.workers]
/** What is sorted on purpose: all of it is given anyway. */
const sorted: readonly string[] = [sql.marks, sql.marksOf]

describe('every statement finds its rows by an index', () => {
  const statements = Object.entries(sql).filter(([, statement]) => !statement.startsWith('pragma'))
  test.each(statements)('%s', (_, statement) => {
    const plan = planOf(statement)
    if (!scanned.includes(statement)) expect(plan.filter((step) => step.startsWith('SCAN'))).toEqual([])
    if (!sorted.includes(statement)) expect(plan.filter((step) => step.includes('TEMP B-TREE'))).toEqual([])
  })

  test.each([
    ['due', /SEARCH run USING INDEX run_due \(definition=\? AND version=\? AND wake/],
    ['nextWake', /SEARCH run USING (COVERING )?INDEX run_due \(definition=\? AND version=\?/],
    [
      'dueIn',
      /SEARCH run USING INDEX sqlite_autoindex_run_1 \(id=\?\)\n[^]*SEARCH run USING INDEX sqlite_autoindex_run_1 \(id>\? AND id<\?\)/,
    ],
    ['owned', /SEARCH run USING INDEX run_owned/],
    ['free', /SEARCH run USING (COVERING )?INDEX run_owned/],
    ['ended', /SEARCH run USING INDEX run_ended/],
    ['batched', /SEARCH batched USING INDEX event_of_run \(rid=\? AND seq/],
    ['alone', /^SEARCH alone USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/],
    ['standing', /SEARCH batched USING INDEX event_of_run \(rid=\?\)/],
    ['standing', /SEARCH alone USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/],
    ['run', /SEARCH batched USING INDEX event_of_run \(rid=\?\)/],
    ['run', /SEARCH alone USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/],
    ['goOn', /^SEARCH run USING INTEGER PRIMARY KEY \(rowid=\?\)\n.*\nSEARCH alone USING INTEGER PRIMARY KEY \(rowid=\?\)$/],
    [
      'goOnAlone',
      /^SEARCH run USING INTEGER PRIMARY KEY \(rowid=\?\)\n.*\nSEARCH batched USING COVERING INDEX event_of_run \(rid=\? AND seq=\?\)$/,
    ],
    ['dropAlone', /^SEARCH alone USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)$/],
    ['dropRecords', /SEARCH record USING INDEX record_of_run/],
  ] as const)('%s by the one that was made for it', (name, step) => {
    expect(planOf(sql[name]).join('\n')).toMatch(step)
  })
})

test('the runs whose ids begin so are found by their ids', () => {
  const [query] = listQueries({ limit: 1, prefix: 'a', tags: { a: 'b', c: 'd' }, status: ['a'], definition: 'd', before: 9 })
  expect(planOf(query?.text ?? '')[0]).toMatch(/^SEARCH run USING INDEX sqlite_autoindex_run_1 \(id>\? AND id<\?\)$/)
})

describe('a listing is led by its narrowest condition, newest first, and sorts nothing', () => {
  test.each<[string, ListFilter, RegExp]>([
    ['nothing', { limit: 1 }, /^SCAN run$/],
    ['a cursor', { limit: 1, before: 5 }, /^SEARCH run USING INTEGER PRIMARY KEY \(rowid<\?\)$/],
    ['a status', { limit: 1, status: ['a'], definition: 'd' }, /^SEARCH run USING INDEX run_status \(status=\?\)$/],
    [
      'a status and a cursor',
      { limit: 1, status: ['a', 'b'], before: 9 },
      /^SEARCH run USING INDEX run_status \(status=\? AND rowid<\?\)$/,
    ],
    ['a definition', { limit: 1, definition: 'd', before: 9 }, /^SEARCH run USING INDEX run_definition \(definition=\? AND rowid<\?\)$/],
    [
      'a tag',
      { limit: 1, tags: { a: 'b' }, status: ['a', 'b'], before: 9 },
      /^SEARCH tag USING PRIMARY KEY \(key=\? AND value=\? AND rid<\?\)/,
    ],
    ['two tags', { limit: 1, tags: { a: 'b', c: 'd' } }, /^SEARCH tag USING PRIMARY KEY \(key=\? AND value=\?\)/],
  ])('%s', (_, filter, first) => {
    for (const { text } of listQueries(filter)) {
      const plan = planOf(text)
      expect(plan[0]).toMatch(first)
      expect(plan.filter((step) => step.includes('TEMP B-TREE') || (filter.tags && step.startsWith('SCAN')))).toEqual([])
    }
  })
})
