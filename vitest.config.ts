import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url))

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
