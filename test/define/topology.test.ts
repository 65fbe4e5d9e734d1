import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agent } from '../../src/define/agent.js'
import { internalsOf, type TopologyInternals } from '../../src/define/definition.js'
import { tool } from '../../src/define/tool.js'
import { topology } from '../../src/define/topology.js'
import type { Definition } from '../../src/define/definition.js'
import { codesOf, idle, loosely } from './problems-of.js'

const insides = (definition: Definition): TopologyInternals => internalsOf(definition) as TopologyInternals
const line = (agents: unknown, more: Record<string, unknown> = {}): string[] =>
  codesOf(() => loosely({ name: 't', flows: ['Start -> A -> End'], agents, ...more }))

describe('agents', () => {
  test('come as functions, specs and agent objects in a record, or as a list', () => {
    const act = (): never => Promise.reject() as never
    const B = agent({ name: 'B', input: z.string(), act })
    const flows = ['Start -> A -> B -> C -> End']
    const record = loosely({ name: 't', flows, agents: { A: act, B, C: { act } } })
    const list = loosely({ name: 't', flows, agents: [agent({ name: 'A', act }), B, agent({ name: 'C', act })] })
    expect(record.digest).toBe(list.digest)
    expect(record.agents.map(({ name }) => name)).toEqual(['A', 'B', 'C'])
    expect(record.agents[1]).toBe(B)
    expect(insides(record).agents['A']?.act).toBe(act)
    expect(insides(record).agents['B']?.input).toBe(B.input)
  })
  test('keep their declared order', () => {
    const made = loosely({ name: 't', flows: ['Start -> A -> B -> End'], agents: idle('B', 'A') })
    expect(insides(made).shape.nodes).toEqual(['B', 'A'])
  })
  test('of the same name are refused', () => {
    expect(line([agent({ name: 'A' }), agent({ name: 'A' })])).toEqual(['DUPLICATE_NAME agents.A'])
  })
  test('under another key than their name are refused', () => {
    expect(line({ A: agent({ name: 'B' }) })).toEqual(['NAME_MISMATCH agents.A'])
  })
  test.each([5, null, 'x', [1]])('that are none are refused: %j', (value) => expect(line({ A: value })).toEqual(['BAD_AGENT agents.A']))
  test('in a list must be made by agent()', () => {
    expect(line([{ name: 'A' }])).toContain('BAD_AGENT agents[0]')
    expect(line(undefined)).toContain('BAD_AGENT agents')
  })
  test('named __proto__ are refused and change nothing', () => {
    expect(codesOf(() => loosely({ name: 't', flows: ['Start -> __proto__ -> End'], agents: { ['__proto__']: () => null } }))).toEqual([
      'BAD_NAME agents.__proto__',
    ])
    expect(({} as { act?: unknown }).act).toBeUndefined()
  })
  test('with nothing to do are models and take every message', () => {
    const made = insides(loosely({ name: 't', flows: ['Start -> A -> End'], agents: { A: { instructions: 'Sing.' } } }))
    expect(made.agents['A']?.act).toBeNull()
    expect(made.shape.agents['A']?.takes).toEqual(['request', 'merged', 'join', 'answer', 'expired', 'feedback'])
  })
})

describe('an agent takes', () => {
  const takes = (act: unknown): unknown =>
    insides(loosely({ name: 't', flows: ['Start -> A -> End'], agents: { A: { act } } })).shape.agents['A']?.takes
  test('everything if it is a function', () => expect(takes(() => null)).toHaveLength(6))
  test('what it has handlers for', () => {
    expect(takes({ request: () => null })).toEqual(['request'])
    expect(takes({ feedback: () => null, join: () => null, request: () => null })).toEqual(['request', 'join', 'feedback'])
  })
  test('what its class has handlers for, with its own `this`', () => {
    class Counter {
      n = 7
      request(): number {
        return this.n
      }
      join(): null {
        return null
      }
    }
    const made = insides(loosely({ name: 't', flows: ['Start -> A -> End'], agents: { A: { act: new Counter() } } }))
    expect(made.shape.agents['A']?.takes).toEqual(['request', 'join'])
    const act = made.agents['A']?.act as unknown as { request: () => number } | undefined
    const request = act?.request
    expect(request?.()).toBe(7)
  })
  test('nothing if a handler is no function, is unknown, or request is missing', () => {
    expect(line({ A: { act: { request: 5 } } })).toEqual(['BAD_OPTION agents.A.act.request'])
    expect(line({ A: { act: { request: () => null, done: () => null } } })).toEqual(['UNKNOWN_OPTION agents.A.act.done'])
    expect(line({ A: { act: {} } })).toEqual(['REQUEST_MISSING agents.A.act.request'])
  })
})

describe("an agent's options", () => {
  test('have defaults', () => {
    const { shape } = insides(loosely({ name: 't', flows: ['Start -> A -> End'], agents: idle('A') }))
    expect(shape.agents['A']).toMatchObject({
      maxRejections: 2,
      timeoutMs: null,
      retry: { attempts: 1, backoffMs: 0, factor: 2, maxBackoffMs: 30_000 },
    })
  })
  test('reach the shape, and functions stay with the code', () => {
    const retryIf = (): boolean => true
    const A = { act: () => null, timeoutMs: 50, maxRejections: 0, retry: { attempts: 3, backoffMs: 10, if: retryIf }, concurrency: 2 }
    const made = insides(loosely({ name: 't', flows: ['Start -> A -> End'], agents: { A } }))
    expect(made.shape.agents['A']).toMatchObject({ timeoutMs: 50, maxRejections: 0, retry: { attempts: 3, backoffMs: 10, factor: 2 } })
    expect(made.agents['A']?.retryIf).toBe(retryIf)
    expect(made.agents['A']?.options.concurrency).toBe(2)
    A.retry.attempts = 9
    expect(made.agents['A']?.options.retry?.attempts).toBe(3)
  })
  test.each([
    [{ timeoutMs: 0 }, 'timeoutMs'],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, 'timeoutMs'],
    [{ maxRejections: -1 }, 'maxRejections'],
    [{ maxRejections: 0.5 }, 'maxRejections'],
    [{ concurrency: 0 }, 'concurrency'],
    [{ retry: 3 }, 'retry'],
    [{ retry: { attempts: 0 } }, 'retry.attempts'],
    [{ retry: { attempts: 1.5 } }, 'retry.attempts'],
    [{ retry: { backoffMs: -1 } }, 'retry.backoffMs'],
    [{ retry: { factor: 0.5 } }, 'retry.factor'],
    [{ retry: { if: true } }, 'retry.if'],
    [{ memory: 'forever' }, 'memory'],
    [{ whenStopped: 'explode' }, 'whenStopped'],
    [{ breaker: { failures: 3 } }, 'breaker.probeMs'],
    [{ compensate: 'undo' }, 'compensate'],
    [{ input: { parse: () => 1 } }, 'input'],
    [{ act: undefined, tools: { search: () => 1 } }, 'tools.search'],
    [{ act: undefined, tools: { finish: tool({ description: '', input: z.string(), run: () => 1 }) } }, 'tools.finish'],
    [{ act: undefined, guardrails: [{ before: () => null }] }, 'guardrails[0]'],
    [{ act: undefined, guardrails: [{ name: 'x' }] }, 'guardrails[0]'],
    [{ act: undefined, guardrails: [{ name: 'x', after: () => null, parallel: true }] }, 'guardrails[0].parallel'],
    [{ tools: {} }, 'tools'],
    [{ model: 'sim' }, 'model'],
    [{ instructions: 'Write.' }, 'instructions'],
    [{ guardrails: [] }, 'guardrails'],
    [{ act: 'run' }, 'act'],
  ])('of a wrong kind are refused: %j', (options, where) => {
    expect(line({ A: { act: () => null, ...options } })).toEqual([`BAD_OPTION agents.A.${where}`])
  })
  test('that are unknown are refused', () =>
    expect(line({ A: { act: () => null, timeout: 5 } })).toEqual(['UNKNOWN_OPTION agents.A.timeout']))
  test('take tools made by tool()', () => {
    const search = tool({ description: 'Searches.', input: z.string(), run: () => 1 })
    expect(line({ A: { tools: { search } } })).toEqual([])
  })
})

describe('state', () => {
  test('has a merge for every key', () => {
    const made = insides(
      loosely({
        name: 't',
        flows: ['Start -> A -> End'],
        agents: idle('A'),
        state: () => ({ n: 0, seen: [], own: 1 }),
        merge: { n: 'last', seen: () => [], own: 'mine' },
      }),
    )
    expect(made.shape.merge).toEqual({ n: 'last', seen: 'function', own: 'mine' })
    expect(Object.keys(made.code.merge)).toEqual(['seen'])
  })
  test('with a key that has no merge is refused, each key at its place', () => {
    expect(line(idle('A'), { state: () => ({ a: 1, b: 2, c: undefined }), merge: { b: 'mine' } })).toEqual([
      'STATE_WITHOUT_MERGE merge.a',
      'STATE_WITHOUT_MERGE merge.c',
    ])
    expect(line(idle('A'), { state: () => ({ a: 1 }) })).toEqual(['STATE_WITHOUT_MERGE merge.a'])
  })
  test('that needs an input is checked when there is one', () => {
    const state = (input: { q: string }) => ({ q: input.q.length })
    expect(line(idle('A'), { state, merge: { q: 'mine' } })).toEqual([])
    expect(line(idle('A'), { state })).toEqual(['STATE_WITHOUT_MERGE merge'])
  })
  test('that is no record is refused', () => {
    expect(line(idle('A'), { state: () => [1] })).toEqual(['BAD_STATE state'])
    expect(line(idle('A'), { state: () => null, merge: {} })).toEqual(['BAD_STATE state'])
    expect(line(idle('A'), { state: (input: unknown) => input, merge: { n: 'mine' } })).toEqual([])
    const handedOn = (state: (input: any) => unknown) => ({ state: (...given: [unknown]) => state(...given), merge: { n: 'mine' } })
    expect(
      line(
        idle('A'),
        handedOn((input) => input),
      ),
    ).toEqual([])
    expect(
      line(
        idle('A'),
        handedOn((input) => input?.settings),
      ),
    ).toEqual([])
    expect(line(idle('A'), { state: (input: unknown = null) => input, merge: { n: 'mine' } })).toEqual([])
    expect(
      line(
        idle('A'),
        handedOn(() => null),
      ),
    ).toEqual(['BAD_STATE state'])
    expect(line(idle('A'), { state: async () => ({}) })).toEqual(['BAD_STATE state'])
    expect(line(idle('A'), { state: () => Promise.reject(new Error('nobody handles this')) })).toEqual(['BAD_STATE state'])
    expect(line(idle('A'), { state: { n: 1 }, merge: { n: 'mine' } })).toEqual(['BAD_OPTION state'])
  })
  test('merges of a wrong kind, or with no state, are refused', () => {
    expect(line(idle('A'), { state: () => ({ n: 1 }), merge: { n: 'first' } })).toEqual(['BAD_MERGE merge.n'])
    expect(line(idle('A'), { merge: { n: 'mine' } })).toEqual(['MERGE_WITHOUT_STATE merge'])
    expect(line(idle('A'), { state: () => ({}), merge: { ['__proto__']: 'mine' } })).toEqual(['BAD_MERGE merge.__proto__'])
  })
})

describe('a topology', () => {
  const made = topology({
    name: 'secret-word',
    output: z.string(),
    rules: ['timeout(180)'],
    flows: ['Start -> O -> End', 'O -> A | B', 'A | B -> O'],
    agents: { O: (turn) => turn.fork(['A', 'B']), A: (turn) => turn.reply('M'), B: (turn) => turn.reply('A') },
  })

  test('shows its name, version, digest, hints, agents and edges', () => {
    expect(Object.keys(made).sort()).toEqual(['agents', 'digest', 'edges', 'hints', 'kind', 'name', 'version'])
    expect(made).toMatchObject({ kind: 'topology', name: 'secret-word', version: '1', hints: [] })
    expect(made.digest).toMatch(/^[0-9a-f]{16}$/)
  })
  test('is frozen, inside as well', () => {
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' ||
      value === null ||
      (Object.isFrozen(value) && Object.values(value).every((item) => '~standard' in Object(item) || frozen(item)))
    expect(frozen(made)).toBe(true)
    expect(frozen(insides(made).shape)).toBe(true)
    expect(frozen(insides(made).code)).toBe(true)
    expect(Object.isFrozen(insides(made)) && Object.isFrozen(insides(made).agents)).toBe(true)
  })
  test('is its data: as JSON it is whole, and its code is out of sight', () => {
    expect(JSON.parse(JSON.stringify(insides(made).shape))).toEqual(insides(made).shape)
    expect(Object.getOwnPropertyNames(made)).toEqual(Object.keys(made))
  })
  test('has a digest of its data, not of its code', () => {
    const flows = ['Start -> A -> End']
    const digest = (more: Record<string, unknown>): string => loosely({ name: 't', flows, agents: { A: () => 1 }, ...more }).digest
    expect(digest({})).toBe(digest({ agents: { A: () => 2 } }))
    for (const more of [
      { name: 'u' },
      { version: '2' },
      { flows: [...flows, 'A -> User'] },
      { rules: ['max_turns(3)'] },
      { result: 'list' },
      { joins: ['A'] },
      { agents: { A: { act: { request: () => 1, merged: () => 1 } } } },
    ])
      expect(digest(more), JSON.stringify(more)).not.toBe(digest({}))
  })
  test('takes joins by option and by rule, each once', () => {
    const both = loosely({
      name: 't',
      flows: ['Start -> H -> A | B -> C -> End'],
      agents: idle('H', 'A', 'B', 'C'),
      joins: ['C', 'B'],
      rules: ['join(C)', 'join(A)'],
    })
    expect(insides(both).shape.joins).toEqual(['C', 'B', 'A'])
  })
  test('takes a result, a version and the versions it continues', () => {
    const result = (): number => 1
    const full = insides(
      loosely({ name: 't', flows: ['Start -> A -> End'], agents: idle('A'), result, version: '2.1', continues: ['1', '2.0'] }),
    )
    expect(full.shape).toMatchObject({ result: 'function', version: '2.1' })
    expect(full.code.result?.([])).toBe(1)
    expect(full.continues).toEqual(['1', '2.0'])
  })
  test.each([
    [{ name: undefined }, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'a\nb' }, 'name'],
    [{ version: 2 }, 'version'],
    [{ version: '1\0' }, 'version'],
    [{ continues: ['\u0085'] }, 'continues'],
    [{ continues: '1' }, 'continues'],
    [{ result: 'first' }, 'result'],
    [{ joins: 'all' }, 'joins'],
    [{ merge: 'mine' }, 'merge'],
    [{ output: {} }, 'output'],
    [{ limits: 4 }, 'limits'],
  ])('with an option of a wrong kind is refused: %j', (more, where) => expect(line(idle('A'), more)).toEqual([`BAD_OPTION ${where}`]))
  test('is told from what is none', () => {
    for (const none of [{ name: 't' }, undefined])
      expect(() => internalsOf(none as never)).toThrow(
        expect.objectContaining({ code: 'INVALID_INPUT', hint: expect.stringContaining('make one with topology') }),
      )
    expect(() => loosely(undefined as never)).toThrow(TypeError)
  })
})
