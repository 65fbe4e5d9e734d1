/** What a column can hold, as both drivers give it. */
export type SqlValue = null | number | string | Uint8Array

export interface Statement {
  run(...values: readonly SqlValue[]): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint }
  get(...values: readonly SqlValue[]): unknown
  all(...values: readonly SqlValue[]): unknown[]
}

/** The part of `node:sqlite` that is used here. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  function(name: string, options: { readonly varargs: boolean }, called: (...values: SqlValue[]) => null): void
  close(): void
  /** Absent before Node 22.16. */
  readonly isTransaction?: boolean
}

export interface Driver {
  readonly DatabaseSync: new (
    path: string,
    options: { readonly readOnly?: boolean; readonly timeout: number; readonly enableForeignKeyConstraints: boolean },
  ) => Database
}

/** SQLite of Node where Node has it, else the same in a package of its own. Loaded on demand: who keeps runs in memory needs neither. */
export async function loadDriver(): Promise<Driver> {
  return ofNode() ?? ((await import('@photostructure/sqlite')) as unknown as Driver)
}

/** Opens a file. It never waits for a lock by itself: that would stop the event loop. */
export function openDatabase(driver: Driver, path: string, mode: 'write' | 'read'): Database {
  return new driver.DatabaseSync(path, { readOnly: mode === 'read', timeout: 0, enableForeignKeyConstraints: false })
}

/**
 * What a select gives, as one row, leaving no statement behind: one of the drivers closes a file only when the last statement on it has
 * been collected as garbage, and a file that is only looked at is to be let go at once.
 */
export function ask(db: Database, columns: string, from = ''): readonly SqlValue[] {
  let answer: readonly SqlValue[] = []
  db.function('tutti_answer', { varargs: true }, (...values) => {
    answer = values
    return null
  })
  db.exec(`select tutti_answer(${columns}) ${from}`)
  return answer
}

function ofNode(): Driver | undefined {
  // Loading it is synchronous, so that only its own warning is held back: whether SQLite's API may change is our business, not our user's.
  const own = Object.getOwnPropertyDescriptor(process, 'emitWarning')
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite') as Driver | undefined
  } finally {
    if (own !== undefined) Object.defineProperty(process, 'emitWarning', own)
  }
}
