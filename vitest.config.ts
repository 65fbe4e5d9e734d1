import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** The sources; or a build, which TUTTI_DIST names: `npm run mutants` plants bugs in copies of it. */
const built = process.env['TUTTI_DIST']
const source = (path: string) =>
  built === undefined
    ? fileURLToPath(new URL(`./src/${path}`, import.meta.url))
    : fileURLToPath(new URL(path.replace(/\.ts$/, '.js'), built))

export default defineConfig({
  resolve: {
    alias: [
      { find: /^tutti$/, replacement: source('index.ts') },
      { find: /^tutti\/testing$/, replacement: source('testing/index.ts') },
      { find: /^tutti\/store$/, replacement: source('engine/store.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    teardownTimeout: 5_000,
  },
})
