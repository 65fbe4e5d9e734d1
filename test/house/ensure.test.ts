import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isInstalled } from '../../scripts/installed.js'
import { root, Workshop } from './workshop.js'

const lock = (packages: object) => JSON.stringify({ packages })
const asked = {
  '': { version: '1.0.0' },
  'node_modules/a': { version: '1.0.0', integrity: 'x' },
  'node_modules/for-a-mac': { version: '1.0.0', optional: true },
}

test.each([
  ['nothing is installed', undefined, false],
  ['everything is there but what is for another platform', { 'node_modules/a': { version: '1.0.0', integrity: 'x' } }, true],
  ['a package is missing', {}, false],
  ['a package has another version', { 'node_modules/a': { version: '1.0.1', integrity: 'x' } }, false],
])('when %s, installed is %o', (_, present, expected) => {
  using workshop = new Workshop()
  workshop.write('clone/package-lock.json', lock(asked))
  if (present) workshop.write('clone/node_modules/.package-lock.json', lock(present))
  expect(isInstalled(join(workshop.folder, 'clone'))).toBe(expected)
})

test('with everything installed the bootstrap does nothing and says nothing', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'scripts/ensure.js')], { encoding: 'utf8' })
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
})
