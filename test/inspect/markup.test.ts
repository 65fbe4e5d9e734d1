import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { plain, xml } from '../../src/inspect/escape.js'
import { htmlFile } from '../../src/inspect/html.js'
import { tag } from '../../src/inspect/markup.js'
import { label, svgFile } from '../../src/inspect/svg.js'
import { cells, fitted, padded } from '../../src/inspect/text-size.js'
import { elements, readMarkup, textOf } from './read-markup.js'

const texts = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '</text><script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    ']]>',
    '<!--',
    '&lt;',
    '\u0000\u001b[2J',
    '\uFFFE',
    '\uD800',
  ),
)
const drawn = (text: string): string =>
  svgFile({ width: 10, height: 10, title: text, description: text, body: [label(1, 2, text), tag('g', { 'data-name': text }, text)] })

describe('markup', () => {
  test('property: whatever a text is, a drawing and a page with it have the same elements, and say it', () => {
    const names = (file: string): string[] => [...elements(readMarkup(file))].map(({ name }) => name)
    const shape = names(drawn('x'))
    fc.assert(
      fc.property(texts, (text) => {
        const root = readMarkup(drawn(text))
        expect([...elements(root)].map(({ name }) => name)).toEqual(shape)
        expect(textOf(root)).toContain(plain(text))
        expect(names(htmlFile(text, tag('p', { title: text }, text)))).toEqual(names(htmlFile('x', tag('p', { title: 'x' }, 'x'))))
      }),
    )
  })

  test('what XML refuses even as an entity is spelt out', () => {
    expect(xml('a\u0000\u000b\uFFFF<b & "c">')).toBe('a\\u{0}\\u{b}\\u{ffff}&lt;b &amp; &quot;c&quot;&gt;')
  })

  test('a page asks for nothing from outside and has no script', () => {
    const page = htmlFile('t', 'hello')
    expect(page).toContain('default-src &#39;none&#39;')
    expect(page).not.toMatch(/<script|<link|https?:|@import|url\(/)
    expect(
      [...elements(readMarkup(page))].flatMap(({ attributes }) => Object.keys(attributes)).filter((key) => /^on|href|src$/.test(key)),
    ).toEqual([])
  })
})

describe('the room that text takes', () => {
  test('wide characters take two cells, marks none, and nothing is cut inside a character', () => {
    expect([cells('abc'), cells('日本'), cells('e\u0301'), cells('🚀')]).toEqual([3, 4, 1, 2])
    expect(fitted('日本語', 5, cells)).toBe('日本…')
    expect(fitted('🚀🚀', 3, cells)).toBe('🚀…')
  })

  test('property: a padded text takes exactly the width it was given', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 30 }), (text, width) => {
        expect(cells(padded(plain(text), width))).toBe(width)
      }),
    )
  })
})
