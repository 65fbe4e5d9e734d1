import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { root, snippetsOf } from '../docs/snippet.js'
import { patience, Place } from './place.js'

vi.setConfig(patience)

const page = 'docs/guide/command-line.md'
const text = readFileSync(join(root, page), 'utf8')

/** The commands of a page, each with what it says that they print and how they end. */
function commandsOf(markdown: string): { readonly args: string[]; readonly prints: string[]; readonly code: number }[] {
  const blocks = [...markdown.matchAll(/^```console\n([\s\S]*?)^```/gm)].map(([, block = '']) => block)
  return blocks.flatMap((block) =>
    block
      .split(/^\$ tutti /m)
      .slice(1)
      .map((part) => {
        const [line = '', ...rest] = part.trimEnd().split('\n')
        const code = Number(/^\(exit (\d+)\)$/.exec(rest.at(-1) ?? '')?.[1] ?? 0)
        return { args: line.split(' '), prints: rest.filter((said) => !said.startsWith('(exit')), code }
      }),
  )
}

test('the commands in the guide do what the page says, with the file that it shows', async () => {
  using place = new Place()
  place.write('refund.ts', snippetsOf(page, text)[0]?.code ?? '')
  const commands = commandsOf(text)
  expect(commands.length).toBeGreaterThan(3)
  for (const { args, prints, code } of commands) {
    const said = await place.tutti(...args)
    expect({ args, code: said.code }).toEqual({ args, code })
    for (const line of prints) expect((said.out + said.err).replaceAll(/ +/g, ' ')).toContain(line.replaceAll(/ +/g, ' '))
  }
})

test('the guide names every command, and no other', async () => {
  using place = new Place()
  const help = await place.tutti('--help')
  const known = [...help.out.matchAll(/^ {2}(\w+) {2,}\S/gm)].map(([, name]) => name ?? '').sort()
  const named = new Set([...text.matchAll(/`tutti (\w+)/g)].map(([, name]) => name ?? ''))
  expect([...named].sort()).toEqual(known)
})
