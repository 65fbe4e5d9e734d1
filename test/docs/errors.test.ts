import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from './snippet.js'

const sources = { Code: 'src/define/tutti-error.ts', FailureCode: 'src/kernel/failure.ts' } as const

/** The members of a union of texts, as its source has them; a template stands for each of the texts it can be. */
function membersOf(union: string, text: string): string[] {
  const body = new RegExp(`export type ${union} =\\s*([\\s\\S]*?)\\n\\n`).exec(text)?.[1]
  if (body === undefined) throw new Error(`there is no union ${union}`)
  const templates = [...body.matchAll(/`([A-Z_]*)\$\{([^}]*)\}`/g)]
  const plain = templates.reduce((rest, [whole]) => rest.replace(whole, ''), body)
  return [
    ...[...plain.matchAll(/'([^']+)'/g)].map(([, code = '']) => code),
    ...templates.flatMap(([, prefix = '', parts = '']) => [...parts.matchAll(/'([^']+)'/g)].map(([, part = '']) => `${prefix}${part}`)),
  ]
}

/** Nothing gives these today, so there is nothing to explain: what would give them does not exist. Such a code has no page. */
const notProduced: Readonly<Record<string, string>> = {}

const codes = [
  ...new Set(Object.entries(sources).flatMap(([union, file]) => membersOf(union, readFileSync(join(root, file), 'utf8')))),
].sort()
const folder = join(root, 'docs/errors')
const files = readdirSync(folder)
const guide = readdirSync(join(root, 'docs/guide'))
const pages = files.filter((file) => file !== 'README.md').map((file) => file.replace(/\.md$/, ''))

/** All code but the two unions themselves. */
function sourceText(): string {
  const given = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  return given
    .map((file) => readFileSync(join(root, 'src', file), 'utf8').replace(/export type (?:Code|FailureCode) =[\s\S]*?\n\n/, ''))
    .join('\n')
}

test('the unions are read whole', () => {
  const text = "export type Sample =\n  | 'A_B'\n  | 'C'\n  | `X_${'Y' | 'Z'}`\n\n"
  expect(membersOf('Sample', text)).toEqual(['A_B', 'C', 'X_Y', 'X_Z'])
  expect(codes).toEqual(
    expect.arrayContaining(['INVALID_TOPOLOGY', 'NOT_A_STORE', 'AGENT_FAILED', 'CANCELLED', 'LIMIT_TURNS', 'LIMIT_TIME']),
  )
})

test('every code has its page, or nothing gives it and it says why', () => {
  expect([...pages, ...Object.keys(notProduced)].sort()).toEqual(codes)
})

test('a code has its page as soon as something gives it, and only then', () => {
  const text = sourceText()
  const given = codes.filter((code) => text.includes(`'${code}'`))
  expect([...pages].sort()).toEqual(given)
})

test.each(pages)('the page of %s is short, is about it, and says what to do', (code) => {
  const text = readFileSync(join(folder, `${code}.md`), 'utf8')
  expect(text.startsWith(`# ${code}\n`)).toBe(true)
  for (const part of ['**What happened.**', '**Why.**', '**What to do.**']) expect(text).toContain(part)
  expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(25)
})

test('the index lists every page once', () => {
  const listed = [...readFileSync(join(folder, 'README.md'), 'utf8').matchAll(/\[`([A-Z_]+)`\]\(([A-Z_]+)\.md\)/g)]
  expect(listed.every(([, name, file]) => name === file)).toBe(true)
  expect([...new Set(listed.map(([, name = '']) => name))].sort()).toEqual([...pages].sort())
})

test('no page speaks of a code that nothing gives', () => {
  const text = sourceText()
  const spoken = [...files.map((file) => join(folder, file)), ...guide.map((file) => join(root, 'docs/guide', file))].flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)].map(([, code = '']) => code),
  )
  expect(spoken).toContain('INVALID_TOPOLOGY')
  expect(spoken.filter((code) => !text.includes(code))).toEqual([])
})
