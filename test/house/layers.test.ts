import { describe, expect, test } from 'vitest'
import { codeOf, layers, root, sourcesOf, strip, Workshop } from './workshop.js'

/** A layer that is right: it exports something and imports from every layer below. */
const good = (layer: string) => {
  const below = layers.slice(0, layers.indexOf(layer as (typeof layers)[number]))
  const imports = below.map((name) => `import { ${name} } from '../${name}/index.js'\n`).join('')
  return `${imports}export const ${layer}: readonly string[] = [${[...below, `'${layer}'`].map((name) => (name.startsWith("'") ? name : `...${name}`)).join(', ')}]\n`
}
const house = () => new Workshop(Object.fromEntries(layers.map((layer) => [`src/${layer}/index.ts`, good(layer)])))

describe('the build', () => {
  test('lets a layer import from the layers below, and not from the one above', async () => {
    using workshop = house()
    expect(await workshop.tsc('-b', 'src/testing')).toBe('')

    const upwards = layers.slice(0, -1).map((layer, index) => ({ layer, above: layers[index + 1] }))
    for (const { layer, above } of upwards) workshop.write(`src/${layer}/up.ts`, `export type { ${above} } from '../${above}/index.js'\n`)
    const outputs = await Promise.all(upwards.map(({ layer }) => workshop.tsc('-p', `src/${layer}`)))
    for (const [index, { layer, above }] of upwards.entries()) {
      expect.soft(outputs[index], `${layer} imports from ${above}`).toMatch(/TS6307/)
    }
  })

  test.each([
    ['a timer', 'export const x: unknown = setTimeout(() => {}, 1)', 'TS2304'],
    ['the process', 'export const x: unknown = process.env', 'TS2591'],
    ['a file', `import { readFileSync } from 'node:fs'\nexport const x: unknown = readFileSync`, 'TS2591'],
    ['a module for its effects', `import 'node:fs'`, 'TS2882'],
    ['the console', `console.log('x')`, 'TS2584'],
    ['a random id', 'export const x: unknown = crypto.randomUUID()', 'TS2304'],
    ['the network', `export const x: unknown = fetch('x')`, 'TS2304'],
    ['a clock of the platform', 'export const x: unknown = performance.now()', 'TS2304'],
  ])('does not let the kernel use %s', async (_, source, code) => {
    using workshop = new Workshop({ 'src/kernel/index.ts': 'export const x = 1\n', 'src/kernel/bad.ts': `${source}\n` })
    expect(await workshop.tsc('-p', 'src/kernel')).toMatch(new RegExp(`^src/kernel/bad\\.ts.*${code}`))
  })
})

describe('the sources', () => {
  const kernel = sourcesOf(root, 'src/kernel')
  const all = sourcesOf(root, 'src')

  test.each([
    ['reads no clock', /\b(?:Date|performance)\b/],
    ['draws no random number', /\bMath\s*(?:\.|\?\.|\[)\s*random\b|\{[^}]*\brandom\b[^}]*\}\s*=\s*Math\b|\bcrypto\b/],
    ['is synchronous', /\b(?:async|await|Promise)\b/],
    ['does not depend on a locale', /\b(?:Intl|localeCompare|toLocale\w*)\b/],
  ])('the kernel %s', (_, forbidden) => {
    expect(kernel.flatMap((file) => linesWith(codeOf(file), forbidden, file))).toEqual([])
  })

  test('the kernel imports nothing but itself', () => {
    const imports = /\b(?:from|import)\s*\(?\s*['"](?!\.\/)[^'"]*['"]/
    expect(kernel.flatMap((file) => linesWith(codeOf(file, 'strings'), imports, file))).toEqual([])
  })

  test('no module keeps state: no let, no var, no empty Map or Set to be filled', () => {
    const state = /^(?:export\s+)?(?:let|var)\b|^(?:export\s+)?const\b.*=\s*new (?:Map|Set)(?:<.*>)?\(\s*\)/
    expect(all.flatMap((file) => linesWith(codeOf(file), state, file))).toEqual([])
  })

  test('the scan looks at code, not at comments and strings', () => {
    expect(
      strip(`a // Date\n/* await\n */ b('Date', "x")`)
        .split('\n')
        .map((line) => line.trimEnd()),
    ).toEqual(['a', '', '    b(      ,    )'])
    expect(strip('`at ${Date.now()} Date`').trim()).toBe('${Date.now()}')
    expect(linesWith('x\nconst t = Date.now()', /\bDate\b/, 'f.ts')).toEqual(['f.ts:2 const t = Date.now()'])
  })
})

function linesWith(text: string, pattern: RegExp, file: string): string[] {
  return text.split('\n').flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : []))
}
