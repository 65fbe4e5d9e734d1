import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pictures } from '../../scripts/pictures.js'
import { root } from './snippet.js'

test('the pictures in the documentation are what the examples draw today (npm run pictures)', { timeout: 60_000 }, async () => {
  const folder = join(root, 'docs/pictures')
  const there = Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
  expect(there).toEqual(await pictures())
})
