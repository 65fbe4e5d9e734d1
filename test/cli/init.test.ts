import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { root } from '../house/workshop.js'
import { patience, Place } from './place.js'

vi.setConfig(patience)

test('a project that init makes runs, passes its tests and its race check as it is, and is not written over', async () => {
  using place = Place.bare()
  const made = await place.tutti('init', 'my-shop')
  expect(made.code).toBe(0)
  expect(made.out.trim().split('\n')).toEqual(
    expect.arrayContaining(['my-shop/workflow.ts', 'my-shop/workflow.test.ts', 'my-shop/README.md']),
  )
  expect(await place.tutti('init', 'my-shop')).toMatchObject({ code: 1, err: expect.stringContaining('nothing was written') })
  install(join(place.folder, 'my-shop'))
  const npm = (...args: string[]): Promise<string> =>
    new Promise((resolve, reject) =>
      execFile('npm', args, { cwd: join(place.folder, 'my-shop') }, (error, out, err) =>
        error === null ? resolve(out) : reject(new Error(`${out}${err}`)),
      ),
    )
  expect(await npm('start')).toContain('{"text":"Tutti means all together.","reviews":["4 words","nothing to object"]}')
  expect(await npm('test')).toMatch(/# pass 2|pass 2/)
  expect(await npm('run', 'check')).toContain('The same outcome in every order')
})

test('a project is not made where a file is in the way, and that is said', async () => {
  using place = Place.bare()
  place.write('notes.txt', 'mine')
  for (const folder of ['notes.txt', 'notes.txt/below'])
    expect(await place.tutti('init', folder)).toEqual({
      code: 1,
      out: '',
      err: `tutti: the folder ${folder} could not be made: it, or a part of its path, is a file; name another folder\n`,
    })
  expect(place.read('notes.txt')).toBe('mine')
})

/** As npm would: the package that is tested here, what a project needs beside it, and a command that may be executed, which a build does not make. */
function install(folder: string): void {
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  symlinkSync(root, join(folder, 'node_modules/tutti'), 'dir')
  symlinkSync(join(root, 'node_modules/tsx'), join(folder, 'node_modules/tsx'), 'dir')
  chmodSync(join(root, 'bundle/cli/main.js'), 0o755)
  symlinkSync('../tutti/bundle/cli/main.js', join(folder, 'node_modules/.bin/tutti'))
}
