import fc from 'fast-check'
import { diagramMermaid, diagramOf, diagramSvg, diagramText, graph, patterns, tool, topology } from 'tutti'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Diagram } from '../../src/inspect/diagram.js'
import { diagramDrawing } from '../../src/inspect/diagram-svg.js'
import { layeredLayout } from '../../src/inspect/layered-layout.js'
import { svgFile } from '../../src/inspect/svg.js'
import { cells } from '../../src/inspect/text-size.js'
import { elements, readMarkup, textOf } from './read-markup.js'

/** Nothing here is ever run. */
const done = (() => undefined) as never

const court = topology({
  name: '<court> "1" %%{init}',
  flows: [
    'Start -> Boss',
    'Boss -> Ann | Ben | Cem',
    'Ann | Ben -> Judge',
    'Cem -> Clerk',
    'Clerk -> Archive',
    'Archive <-> Judge',
    'Archive -> End',
    'Boss ~> Log',
    'Log -> End',
    'Clerk -> User',
  ],
  joins: 'auto',
  rules: ['join(Archive)'],
  agents: { Boss: done, Ann: done, Ben: done, Cem: done, Judge: done, Clerk: done, Archive: done, Log: done },
})

const release = graph('release')
  .step('checkout', { run: () => 1 })
  .step('lint', { onError: 'skip', run: () => 1 })
  .step('build', { after: ['checkout'], each: () => [1], concurrency: 2, retry: { attempts: 4 }, timeoutMs: 5_000, run: () => 1 })
  .ask('approve', { after: ['build', 'lint'], question: () => 'Ship it?', schema: z.boolean(), timeoutMs: 86_400_000 })
  .step('ship', { after: ['approve', 'lint', 'checkout'], join: { quorum: 2 }, when: () => true, run: () => 1 })
  .output()

describe('the picture of a topology', () => {
  test('has its agents and edges; edges to and fro are one, and those that notify say so', () => {
    const { nodes, edges } = diagramOf(court)
    expect(nodes.map(({ id }) => id)).toEqual(['Start', 'Boss', 'Ann', 'Ben', 'Cem', 'Judge', 'Clerk', 'Archive', 'Log', 'User', 'End'])
    expect(edges).toContainEqual({ from: 'Archive', to: 'Judge', notify: false, both: true })
    expect(edges).toContainEqual({ from: 'Boss', to: 'Log', notify: true, both: false })
    expect(edges.filter(({ from, to }) => from === 'Judge' && to === 'Archive')).toEqual([])
  })

  test('says why branches meet where they do: the edges, the rule, or the option', () => {
    const meets = (definition: Parameters<typeof diagramOf>[0]) =>
      Object.fromEntries(diagramOf(definition).nodes.flatMap(({ id, meets: why }) => (why === null ? [] : [[id, why]])))
    expect(meets(court)).toEqual({
      Judge: "branches meet here: Ann and Ben lead to it (joins: 'auto')",
      Archive: 'branches meet here: the rule join(Archive)',
    })
    const named = topology({
      name: 'named',
      flows: ['Start -> A', 'A -> B | C', 'B | C -> D -> End'],
      joins: ['D'],
      agents: { A: done, B: done, C: done, D: done },
    })
    expect(meets(named)).toEqual({ D: 'branches meet here: it is named in `joins`' })
    expect(diagramText(topology({ name: 'plain', flows: patterns.pipeline(['A', 'B']), agents: { A: done, B: done } }))).not.toContain(
      'meet',
    )
  })

  test('says which agents are language models, what tools they have, and what can be undone', () => {
    const pay = tool({ description: 'pays', input: z.object({}), run: () => 1, compensate: () => 0 })
    const desk = topology({
      name: 'desk',
      flows: ['Start -> Clerk', 'Clerk <-> Bank', 'Clerk -> End'],
      agents: { Clerk: { instructions: 'Pay.', tools: { pay } }, Bank: { retry: { attempts: 3 }, timeoutMs: 60_000, act: done } },
    })
    expect(diagramOf(desk).nodes.map(({ notes }) => notes)).toEqual([
      [],
      ['a language model', 'tools: pay', 'can be undone'],
      ['up to 3 attempts', 'at most 1 min'],
      [],
    ])
  })

  test('as text names where each leads, keeps to its width, and gives the hints of the definition', () => {
    const text = diagramText(court, { width: 60 })
    expect(text).toMatch(/Boss +→ Ann, Ben, Cem {3}⇢ Log/)
    expect(text).toMatch(/Archive +↔ Judge {3}→ End/)
    for (const line of text.split('\n')) expect(cells(line)).toBeLessThanOrEqual(60)
    for (let width = 24; width < 60; width++) expect(diagramText(court, { width })).not.toMatch(/[↔→⇢]$/m)
    expect(diagramText(court, { width: 32 })).toMatch(/Boss +→ Ann, Ben, Cem\n +⇢ Log\n/)
    const open = topology({
      name: 'open',
      flows: ['Start -> A', 'A -> B | C', 'B | C -> D -> End'],
      agents: { A: done, B: done, C: done, D: done },
    })
    expect(diagramText(open)).toContain('hint: D: branches that A starts')
    expect(textOf(readMarkup(diagramSvg(open)))).toContain('hint: D:')
  })

  test('whatever a definition is called, Mermaid and SVG stay what they are', () => {
    const mermaid = diagramMermaid(court).split('\n')
    expect(mermaid.slice(0, 2)).toEqual(['flowchart LR', '  %% topology <court> "1" % % {init}'])
    expect(mermaid).toContain('  n1 -.-> n8')
    expect(
      mermaid.slice(2).filter((line) => !/^( {2}n\d+(\[\[?|\{\{|\(\[?\(?)"[^"]*"[\]})]+| {2}n\d+ (-->|<-->|-\.->) n\d+|)$/.test(line)),
    ).toEqual([])
    const root = readMarkup(diagramSvg(court))
    expect(new Set([...elements(root)].map(({ name }) => name))).toEqual(
      new Set(['svg', 'title', 'desc', 'style', 'defs', 'pattern', 'rect', 'line', 'text', 'g', 'path']),
    )
    expect(textOf(root)).toContain('<court> "1" %%{init}')
  })
})

test('a mesh of sixty, where everybody may call everybody, is still drawn', () => {
  const names = Array.from({ length: 60 }, (_, index) => `A${index}`)
  const flows = patterns.mesh({ entry: 'A0', members: names })
  const mesh = topology({ name: 'mesh', flows, agents: Object.fromEntries(names.map((name) => [name, done])) } as never)
  expect(textOf(readMarkup(diagramSvg(mesh)))).toContain('A59')
})

test('the picture of a graph says what each step waits for and what it does besides', () => {
  const nodes = Object.fromEntries(diagramOf(release).nodes.map(({ id, meets, notes, kind }) => [id, [kind, meets, ...notes]]))
  expect(nodes).toEqual({
    checkout: ['step', null],
    lint: ['step', null, 'on error: skip'],
    build: ['step', null, 'for each item, 2 at once', 'up to 4 attempts', 'at most 5 s'],
    approve: ['ask', 'starts after build and lint', 'asks a person, for 1 d'],
    ship: ['step', 'starts after 2 of approve, lint and checkout', 'only when its condition holds'],
  })
  expect(diagramText(release)).toMatch(/build +after checkout/)
})

test('property: no two boxes overlap, lines lead from one side of a box to another, apart from each other, and the layout is the same each time', () => {
  const graphs = fc.integer({ min: 1, max: 14 }).chain((size) =>
    fc.record({
      boxes: fc.array(fc.record({ width: fc.integer({ min: 20, max: 200 }), height: fc.integer({ min: 20, max: 90 }) }), {
        minLength: size,
        maxLength: size,
      }),
      links: fc.array(fc.record({ from: fc.nat(size - 1), to: fc.nat(size - 1) }), { maxLength: 40 }),
    }),
  )
  fc.assert(
    fc.property(graphs, ({ boxes, links }) => {
      const given = boxes.map((box, index) => ({ id: `b${index}`, ...box }))
      const ends = links.map(({ from, to }) => ({ from: `b${from}`, to: `b${to}` }))
      const layout = layeredLayout(given, ends, ['b0'])
      expect(layeredLayout(given, ends, ['b0'])).toEqual(layout)
      const placed = new Map(layout.boxes.map((box) => [box.id, box]))
      for (const a of layout.boxes) {
        expect(a.x >= 0 && a.y >= -1e-6 && a.x + a.width <= layout.width + 1e-6 && a.y + a.height <= layout.height + 1e-6).toBe(true)
        for (const b of layout.boxes)
          if (a.id < b.id) expect(a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y).toBe(true)
      }
      expect(layout.routes.map(({ link }) => link)).toEqual([...ends.keys()].filter((index) => ends[index]?.from !== ends[index]?.to))
      for (const { link, reversed, points } of layout.routes) {
        const { from, to } = ends[link] ?? { from: '', to: '' }
        const [left, right] = [placed.get(reversed ? to : from), placed.get(reversed ? from : to)]
        expect(points[0]?.x).toBeCloseTo((left?.x ?? 0) + (left?.width ?? 0))
        expect(points.at(-1)?.x).toBeCloseTo(right?.x ?? 0)
      }
      for (const { x, y, width, height } of layout.boxes)
        for (const [side, end] of [
          [x + width, 0],
          [x, -1],
        ] as const) {
          const ends = layout.routes.map(({ points }) => points.at(end)).filter((point) => point?.x === side)
          const heights = ends.map((point) => point?.y ?? 0).filter((at) => at > y && at < y + height)
          for (const [index, at] of heights.sort((a, b) => a - b).entries())
            expect(at - (heights[index - 1] ?? -Infinity)).toBeGreaterThan(9.9)
        }
    }),
    { numRuns: 60 },
  )
})

/** Points along the lines and curves of a path. */
function* along(way: string): Generator<{ x: number; y: number }> {
  let [x, y] = [0, 0]
  for (const [, letter, given = ''] of way.matchAll(/([MHC])([^A-Z]*)/g)) {
    const numbers = given.trim().split(' ').map(Number)
    const [x3 = 0, y3 = y] = letter === 'H' ? numbers : numbers.slice(-2)
    const [x1 = x, y1 = y, x2 = x3, y2 = y3] = letter === 'C' ? numbers : []
    for (let t = 0; letter !== 'M' && t <= 1; t += 1 / 32) {
      const on = (a: number, b: number, c: number, d: number): number =>
        a * (1 - t) ** 3 + 3 * b * t * (1 - t) ** 2 + 3 * c * t ** 2 * (1 - t) + d * t ** 3
      yield { x: on(x, x1, x2, x3), y: on(y, y1, y2, y3) }
    }
    ;[x, y] = [x3, y3]
  }
}

test('property: no edge of a diagram goes behind a box', () => {
  const diagrams = fc.integer({ min: 2, max: 14 }).chain((size) =>
    fc.record({
      nodes: fc.array(fc.record({ long: fc.nat(30), notes: fc.array(fc.constant('it does this and that'), { maxLength: 3 }) }), {
        minLength: size,
        maxLength: size,
      }),
      edges: fc.array(fc.record({ from: fc.nat(size - 1), to: fc.nat(size - 1), notify: fc.boolean(), both: fc.boolean() }), {
        minLength: 1,
        maxLength: 30,
      }),
    }),
  )
  fc.assert(
    fc.property(diagrams, ({ nodes, edges }) => {
      const ids = nodes.map(({ long }, index) => (index === 3 ? 'End' : `${'n'.repeat(long)}${index}`))
      const diagram: Diagram = {
        kind: 'topology',
        name: 'random',
        version: '1',
        nodes: nodes.map(({ notes }, index) => ({ id: ids[index] ?? '', kind: 'agent', meets: null, notes })),
        edges: edges.map(({ from, to, notify, both }) => ({ from: ids[from] ?? '', to: ids[to] ?? '', notify, both })),
        hints: [],
      }
      const found = [...elements(readMarkup(svgFile(diagramDrawing(diagram))))]
      const ways = found.flatMap(({ name, attributes: { d = '' } }) => (name === 'path' && d.includes('C') ? [d] : []))
      expect(ways).toHaveLength(diagram.edges.filter(({ from, to }) => from !== to).length)
      const boxes = found.flatMap(({ name, attributes: { x, y, width, height, fill } }) =>
        name === 'rect' && fill === 'var(--tutti-panel)' && x !== undefined ? [[x, y, width, height].map(Number)] : [],
      )
      expect(boxes).toHaveLength(nodes.length)
      const behind = ways
        .flatMap((way) => [...along(way)])
        .filter(({ x, y }) =>
          boxes.some(
            ([left = 0, top = 0, width = 0, height = 0]) => x > left + 0.1 && x < left + width - 0.1 && y > top && y < top + height,
          ),
        )
      expect(behind).toEqual([])
    }),
  )
})
