import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from './workshop.js'

interface Locked {
  resolved?: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}
const text = readFileSync(join(root, 'package-lock.json'), 'utf8')
const { packages } = JSON.parse(text) as { packages: Record<string, Locked> }

// npm drops an optional package that its registry doesn't have, in silence, and then `npm ci` refuses the lockfile everywhere.
test('the lockfile names every package that a locked package asks for, for every platform', () => {
  const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => !foldersAbove(path).some((folder) => `${folder}node_modules/${name}` in packages))
      .map((name) => `${name}, for ${path || 'the project'}`),
  )
  expect(missing).toEqual([])
})

test('the lockfile names no registry', () => {
  expect(Object.entries(packages).filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
})

/** Where Node looks for the dependencies of a package: its own folder, then those around it. */
function foldersAbove(path: string): string[] {
  const parts = path === '' ? [] : path.split('/node_modules/')
  return [...parts.keys(), parts.length].map((length) =>
    parts
      .slice(0, length)
      .map((part) => `${part}/`)
      .join('node_modules/'),
  )
}
