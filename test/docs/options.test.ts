import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { graph, topology, TuttiError } from 'tutti'
import { expect, test } from 'vitest'
import { root } from './snippet.js'

const page = readFileSync(join(root, 'docs/options.md'), 'utf8')

/** The options in the first column of a section's table. */
function namedIn(section: string): string[] {
  const [, text = ''] = page.split(`## ${section}\n`)
  const rows = [...(text.split('\n## ')[0] ?? '').matchAll(/^\| (`[^|]+`) \|/gm)]
  return rows.flatMap(([, first = '']) => [...first.matchAll(/`(\w+)`/g)].map(([, name = '']) => name))
}

/** The options that there are, as whoever names another is told. */
function knownAt(where: string, make: () => unknown): string[] {
  try {
    make()
  } catch (error) {
    const problems = error instanceof TuttiError ? (error.problems ?? []) : []
    const told = problems.find((problem) => problem.where === where)?.message ?? ''
    return /there are (.*)$/.exec(told)?.[1]?.split(', ') ?? []
  }
  return []
}

test('the page about options names each that there is, and no other', () => {
  const wrong = { name: 'wrong', flows: ['Start -> A -> End'], no: 1, limits: { no: 1 }, agents: { A: { no: 1, act: () => 1 } } }
  const made = (): unknown => topology(wrong as never)
  const known = {
    'A topology': knownAt('no', made),
    'An agent': knownAt('agents.A.no', made),
    'A graph': knownAt('no', () =>
      graph('wrong', { no: 1 } as never)
        .step('a', { run: () => 1 })
        .output(),
    ),
    Limits: knownAt('limits.no', made),
  }
  for (const [section, names] of Object.entries(known)) {
    expect(names.length, section).toBeGreaterThan(5)
    expect(namedIn(section).sort(), section).toEqual(names.sort())
  }
})
