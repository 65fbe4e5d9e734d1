import { expect, test } from 'vitest'
import { type Shown, pieces } from '../../src/cli/shown.js'
import { commandOf } from '../../src/cli/told.js'

const textOf = (line: Shown): string =>
  pieces(line)
    .map(({ text }) => text)
    .join('')

test('a command to type names its run as a shell takes it', () => {
  expect(textOf(commandOf('show', { id: 'r40', store: undefined }))).toMatch(/tutti show r40$/)
  expect(textOf(commandOf('show', { id: "Ann's run; ls", store: 'a b.db' }))).toMatch(/tutti show 'Ann'\\''s run; ls' --store 'a b\.db'$/)
  expect(textOf(commandOf('agents', { store: 'a b.db' }))).toMatch(/tutti agents --store 'a b\.db'$/)
  expect(textOf(commandOf('answer', { id: '-x', store: 'a b.db' }, 'r~1', "'<json>'"))).toMatch(
    /tutti answer --store 'a b\.db' -- -x r~1 '<json>'$/,
  )
})
