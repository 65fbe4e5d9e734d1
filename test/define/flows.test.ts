import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readFlows } from '../../src/define/flows.js'
import type { Edge } from '../../src/kernel/shape.js'
import { codesOf, idle, loosely } from './problems-of.js'

const edges = (...flows: readonly unknown[]): string[] =>
  readFlows(flows).edges.map((edge) => `${edge.from}${edge.notify ? '~' : '-'}${edge.to}`)
const refusal = (flow: unknown): string =>
  readFlows([flow])
    .problems.map(({ code, where }) => `${code} ${where}`)
    .join()

describe('a flow string', () => {
  test('says who may call whom', () => expect(edges('A -> B')).toEqual(['A-B']))
  test('is the same however it is spaced', () => {
    expect(edges('A->B|C', '  A  ->  D ', 'E\t->\n F')).toEqual(['A-B', 'A-C', 'A-D', 'E-F'])
  })
  test('leads from each of a group to each of the next, in the order written', () => {
    expect(edges('A | B -> C | D')).toEqual(['A-C', 'A-D', 'B-C', 'B-D'])
  })
  test('goes on as a chain', () => expect(edges('Start -> A | B -> C -> End')).toEqual(['Start-A', 'Start-B', 'A-C', 'B-C', 'C-End']))
  test('goes both ways with <->, also in the middle of a chain', () => {
    expect(edges('A <-> B')).toEqual(['A-B', 'B-A'])
    expect(edges('Start -> H <-> A | B')).toEqual(['Start-H', 'H-A', 'H-B', 'A-H', 'B-H'])
  })
  test('notifies with ~>', () => expect(edges('A | B ~> Log')).toEqual(['A~Log', 'B~Log']))
  test('keeps names with dashes apart from arrows', () => expect(edges('a-b->c-d<->e')).toEqual(['a-b-c-d', 'c-d-e', 'e-c-d']))
  test.each([
    'A',
    '',
    '->',
    'A ->',
    '-> B',
    'A || B -> C',
    'A -> B |',
    'A -> -> B',
    'A ~> B -> C',
    'A ~> B ~> C',
    'A <- B',
    'A => B',
    'A → B',
    'A <~> B',
  ])('that can not be read is a problem at its own text: %j', (flow) => {
    expect(refusal(flow)).toBe(`BAD_FLOW ${flow}`)
  })
})

describe('an edge as an object', () => {
  test('is the edge, and a notify edge if it says so', () => {
    expect(edges({ from: 'A', to: 'B' }, { from: 'A', to: 'C', notify: true }, { from: 'A', to: 'D', notify: false })).toEqual([
      'A-B',
      'A~C',
      'A-D',
    ])
  })
  test.each([null, 3, {}, { from: 'A' }, { from: 'A', to: 1 }, { from: 'A', to: 'B', notify: 'yes' }, { from: 'A', to: 'B', wait: true }])(
    'that is none is a problem at its place: %j',
    (flow) => {
      expect(refusal(flow)).toBe('BAD_FLOW flows[0]')
    },
  )
})

test('flows that are neither a list nor a pattern are one problem', () => {
  expect(codesOf(() => loosely({ name: 't', flows: 'Start -> A', agents: idle('A') }))).toContain('BAD_FLOW flows')
})

test('problems of several flows come together', () => {
  const codes = codesOf(() => loosely({ name: 't', flows: ['Start -> A', 'A -> ', 'A -> End', 'oops'], agents: idle('A') }))
  expect(codes).toEqual(['BAD_FLOW A -> ', 'BAD_FLOW oops'])
})

describe('the three forms', () => {
  const nodes = fc.constantFrom('Start', 'End', 'User', 'A', 'B', 'C-c', 'Ünal', 'D4')
  const edge = fc.record({ from: nodes, to: nodes, notify: fc.boolean() })
  const plain = (list: readonly Edge[]): Edge[] => list.map(({ from, to, notify }) => (notify ? { from, to, notify } : { from, to }))
  const read = (flows: unknown): Edge[] => {
    const { edges: all, problems } = readFlows(flows)
    expect(problems).toEqual([])
    return plain(all)
  }

  test('property: strings, objects and patterns give the same edges in the same order', () => {
    fc.assert(
      fc.property(fc.array(edge), (list) => {
        const strings = list.map(({ from, to, notify }) => `${from} ${notify ? '~>' : '->'} ${to}`)
        expect(read(strings)).toEqual(plain(list))
        expect(read(list)).toEqual(plain(list))
        expect(read({ edges: list })).toEqual(plain(list))
      }),
    )
  })

  test('property: a string of groups and arrows is the edges of each arrow, one after the other', () => {
    const group = fc.uniqueArray(nodes, { minLength: 1, maxLength: 3 })
    const space = fc.constantFrom('', ' ', '  ', '\t')
    const link = fc.record({ arrow: fc.constantFrom('->', '<->'), group, space })
    fc.assert(
      fc.property(group, fc.array(link, { minLength: 1, maxLength: 4 }), (first, links) => {
        let text = first.join('|')
        let left = first
        const expected: Edge[] = []
        for (const { arrow, group: right, space: gap } of links) {
          text += `${gap}${arrow}${gap}${right.join(`${gap}|${gap}`)}`
          expected.push(...left.flatMap((from) => right.map((to) => ({ from, to }))))
          if (arrow === '<->') expected.push(...right.flatMap((from) => left.map((to) => ({ from, to }))))
          left = right
        }
        expect(read([text])).toEqual(expected)
      }),
    )
  })

  test('give the same definition, down to the digest', () => {
    const agents = idle('H', 'A', 'B')
    const strings = loosely({ name: 't', flows: ['Start -> H', 'H <-> A', 'H <-> B', 'H -> End'], agents })
    const objects = loosely({
      name: 't',
      flows: [
        { from: 'Start', to: 'H' },
        { from: 'H', to: 'A' },
        { from: 'A', to: 'H' },
        { from: 'H', to: 'B' },
        { from: 'B', to: 'H' },
        { from: 'H', to: 'End' },
      ],
      agents,
    })
    expect(objects.edges).toEqual(strings.edges)
    expect(objects.digest).toBe(strings.digest)
  })
})
