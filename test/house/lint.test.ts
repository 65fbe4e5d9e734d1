import { expect, test } from 'vitest'
import { Workshop } from './workshop.js'

test('the linter refuses lost promises, forgotten cases, cycles, the console, and time, chance and promises in the kernel', async () => {
  using workshop = new Workshop({
    'src/engine/lost.ts': 'export function lose(work: () => Promise<void>): void {\n  work()\n}\n',
    'src/engine/forgotten.ts': `export function name(x: 'a' | 'b'): string {\n  switch (x) {\n    case 'a':\n      return x\n  }\n  return ''\n}\n`,
    'src/engine/here.ts': `import { there } from './there.js'\nexport const here = (): unknown => there\n`,
    'src/engine/there.ts': `import { here } from './here.js'\nexport const there = (): unknown => here\n`,
    'src/engine/loud.ts': `console.log('x')\n`,
    'src/kernel/clock.ts': 'export const now = (): number => Date.now()\n',
    'src/kernel/chance.ts': 'export const chance = (): number => Math.random()\n',
    'src/kernel/later.ts': 'export const later = async (): Promise<number> => 1\n',
    'src/kernel/locale.ts': 'export const order = (a: string, b: string): number => a.localeCompare(b)\n',
    'src/kernel/fine.ts': 'export const double = (n: number): number => n * 2\n',
  })
  expect((await workshop.oxlint()).sort()).toEqual([
    'src/engine/forgotten.ts: typescript(switch-exhaustiveness-check)',
    'src/engine/here.ts: import(no-cycle)',
    'src/engine/lost.ts: typescript(no-floating-promises)',
    'src/engine/loud.ts: eslint(no-console)',
    'src/engine/there.ts: import(no-cycle)',
    'src/kernel/chance.ts: eslint(no-restricted-properties)',
    'src/kernel/clock.ts: eslint(no-restricted-globals)',
    'src/kernel/later.ts: oxc(no-async-await)',
    'src/kernel/locale.ts: eslint(no-restricted-properties)',
  ])
})
