import { describe, expect, test } from 'vitest'
import { internalsOf, type TopologyInternals } from '../../src/define/definition.js'
import { readRules } from '../../src/define/rules.js'
import { defaultLimits } from '../../src/kernel/shape.js'
import { idle, loosely } from './problems-of.js'

const problems = (rules: unknown, limits?: unknown): string[] =>
  readRules(rules, limits).problems.map(({ code, where }) => `${code} ${where}`)

describe('a rule', () => {
  test.each([
    ['timeout(180)', { timeoutMs: 180_000 }],
    ['timeout(90s)', { timeoutMs: 90_000 }],
    ['timeout(1.5m)', { timeoutMs: 90_000 }],
    ['timeout( 2 h )', { timeoutMs: 7_200_000 }],
    ['max_turns(40)', { maxTurns: 40 }],
    ['max_branches(7)', { maxBranches: 7 }],
    ['max_depth(3)', { maxDepth: 3 }],
  ])('%s is a limit', (rule, limits) => {
    expect(readRules([rule], undefined)).toEqual({ limits, joins: [], problems: [] })
  })
  test('join(C) names a rendezvous', () => {
    expect(readRules(['join(C)'], undefined).joins).toEqual([{ node: 'C', where: 'join(C)' }])
  })
  test.each([
    'timeout',
    'timeout()',
    'timeout(0)',
    'timeout(-1)',
    'timeout(5d)',
    'timeout(1e3)',
    'max_turns(0)',
    'max_turns(1.5)',
    'max_turns(40) please',
    'max_depth(x)',
    'join()',
    '',
  ])('that is malformed is a problem: %j', (rule) => {
    expect(problems([rule])).toEqual([`BAD_RULE ${rule}`])
  })
  test('that is unknown is a problem, not a wish', () => {
    expect(problems(['max_cost(3)', 'constructor(1)'])).toEqual(['UNKNOWN_RULE max_cost(3)', 'UNKNOWN_RULE constructor(1)'])
  })
  test('that is no string, and rules that are no list, are problems', () => {
    expect(problems([5])).toEqual(['BAD_RULE rules'])
    expect(problems('timeout(5)')).toEqual(['BAD_RULE rules'])
  })
})

describe('rules and limits', () => {
  test('add up', () => {
    expect(readRules(['max_turns(40)'], { maxDepth: 3 }).limits).toEqual({ maxTurns: 40, maxDepth: 3 })
  })
  test('may say the same', () => expect(problems(['timeout(3)', 'timeout(3s)'], { timeoutMs: 3_000 })).toEqual([]))
  test('must not contradict each other', () => {
    const [problem] = readRules(['timeout(180)'], { timeoutMs: 1_000 }).problems
    expect(problem).toMatchObject({ code: 'RULE_CONTRADICTS', where: 'timeout(180)' })
    expect(problem?.message).toContain('limits.timeoutMs says 1000')
    expect(problems(['max_turns(4)', 'max_turns(5)'])).toEqual(['RULE_CONTRADICTS max_turns(5)'])
  })
})

describe('a limit', () => {
  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '4', null, {}])('of turns that is no count is a problem: %j', (maxTurns) => {
    expect(problems([], { maxTurns })).toEqual(['BAD_LIMIT limits.maxTurns'])
  })
  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, '4'])('of time or cost that is no amount is a problem: %j', (value) => {
    expect(problems([], { timeoutMs: value, costUsd: value })).toEqual(['BAD_LIMIT limits.timeoutMs', 'BAD_LIMIT limits.costUsd'])
  })
  test('that is unknown is a problem', () => expect(problems([], { maxTurn: 4 })).toEqual(['UNKNOWN_LIMIT limits.maxTurn']))
  test('that is undefined is none', () => expect(problems([], { maxTurns: undefined })).toEqual([]))
  test('that is not given has its default', () => {
    const made = loosely({
      name: 't',
      flows: ['Start -> A -> End'],
      agents: idle('A'),
      rules: ['timeout(180)'],
      limits: { maxFanOut: 9, tokens: 5 },
    })
    const { shape, limits } = internalsOf(made) as TopologyInternals
    expect(shape.limits).toEqual({ ...defaultLimits, timeoutMs: 180_000, maxFanOut: 9, tokens: 5 })
    expect(limits).toEqual({ timeoutMs: 180_000, maxFanOut: 9, tokens: 5 })
  })
})
