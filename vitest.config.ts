import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

/** The sources; or a build, which TUTTI_DIST names: `npm run mutants` plants bugs in copies of it. */
const built = process.env['TUTTI_DIST']
const source = (path: string) =>
  built === undefined
    ? fileURLToPath(new URL(`./src/${path}`, import.meta.url))
    : fileURLToPath(new URL(path.replace(/\.ts$/, '.js'), built))

const replacing = ['test/reference/alike.test.ts']

export default defineConfig({
  resolve: {
    alias: [
      { find: /^tutti$/, replacement: source('index.ts') },
      { find: /^tutti\/testing$/, replacement: source('testing/index.ts') },
      { find: /^tutti\/store$/, replacement: source('engine/store.ts') },
    ],
  },
  test: {
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    teardownTimeout: 5_000,
    // No module keeps anything, so that files can share those that are loaded: that takes a third off the time. A file that puts another module in
    // the place of one has them for itself.
    projects: [
      { extends: true, test: { name: 'shared', include: ['test/**/*.test.ts'], exclude: replacing, isolate: false } },
      { extends: true, test: { name: 'own', include: replacing } },
    ],
  },
})
