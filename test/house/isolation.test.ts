import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import config from '../../vitest.config.js'

const folder = new URL('../', import.meta.url)
const call = ['vi', 'mock('].join('.')

/** Files share the modules that are loaded: one that replaces some would change them for others, or have no effect at all. */
test('a test that puts a module in the place of another has its modules for itself', () => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.test.ts'))
  const replacing = files.filter((file) => readFileSync(new URL(file, folder), 'utf8').includes(call)).map((file) => `test/${file}`)
  const own = config.test?.projects?.find((project) => typeof project === 'object' && 'test' in project && project.test?.name === 'own')
  expect(replacing).not.toEqual([])
  expect(own).toMatchObject({ test: { include: replacing } })
})
