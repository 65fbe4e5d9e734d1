import { createRequire } from 'node:module'
import { join } from 'node:path'
import process from 'node:process'

/** Where tests go. */
export interface TestRunner {
  readonly describe?: (name: string, body: () => void) => unknown
  readonly test?: (name: string, body: () => Promise<void>) => unknown
}

/**
 * The test runner that calls: its globals, vitest, or `node:test`; none if it can't be told. Found while it is called and not when this
 * module is loaded, so that nothing is waited for, and what else is in this package can be used where no runner is installed.
 */
export function runnerAround(): TestRunner {
  const { describe, test } = globalThis as TestRunner
  if (describe !== undefined && test !== undefined) return { describe, test }
  if ('__vitest_worker__' in globalThis) return vitestAround()
  if (process.env['NODE_TEST_CONTEXT'] !== undefined) return process.getBuiltinModule('node:test') as unknown as TestRunner
  return {}
}

/** The one that is loaded already. What it offers for `require` only throws, but what it is made of can be had that way. */
function vitestAround(): TestRunner {
  for (const from of [import.meta.url, join(process.cwd(), 'test.js')]) {
    try {
      const installed = createRequire(createRequire(from).resolve('vitest/package.json'))
      const { describe, test } = installed('@vitest/runner') as TestRunner
      if (describe !== undefined && test !== undefined) return { describe, test }
    } catch {
      // It is installed elsewhere, or can't be had like this.
    }
  }
  return {}
}
