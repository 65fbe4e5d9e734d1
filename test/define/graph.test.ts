import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agent } from '../../src/define/agent.js'
import { type Definition, type GraphInternals, internalsOf, type Topology } from '../../src/define/definition.js'
import { graph } from '../../src/define/graph.js'
import { TuttiError } from '../../src/define/tutti-error.js'
import { codesOf, idle, loosely, problemsOf } from './problems-of.js'

interface Loose {
  step(id: unknown, def: unknown): Loose
  ask(id: unknown, def: unknown): Loose
  output(result?: unknown): Definition & { steps: readonly string[] }
}
const start = (options: unknown = {}): Loose => (graph as unknown as (name: string, options: unknown) => Loose)('g', options)
const insides = (definition: Definition): GraphInternals => internalsOf(definition) as GraphInternals
const run = (): number => 1

describe('a graph', () => {
  const made = graph('release', { input: z.object({ tag: z.string() }), required: ['build'], concurrency: 3 })
    .step('build', { run: ({ input }) => input.tag, retry: { attempts: 4 }, compensate: () => null })
    .step('test', { after: ['build'], when: () => true, run: ({ steps }) => steps.build, onError: { fallback: 'none' } })
    .step('ship', {
      after: ['build', 'test'],
      join: { policy: 'any' },
      each: () => [1, 2],
      concurrency: 2,
      timeoutMs: 50,
      run: ({ item }) => item,
    })
    .ask('approve', { after: ['ship'], question: () => 'go?', schema: z.boolean(), timeoutMs: 1_000 })
    .output(({ steps }) => steps.approve)

  test('is the data of its steps, in declared order', () => {
    const { shape } = insides(made)
    expect(made.steps).toEqual(['build', 'test', 'ship', 'approve'])
    expect(shape).toMatchObject({
      kind: 'graph',
      name: 'release',
      version: '1',
      stragglers: 'wait',
      limits: { concurrency: 3 },
      nodes: ['build', 'test', 'ship', 'approve'],
      result: 'function',
      required: ['build'],
      digest: made.digest,
    })
    expect(shape.steps[0]).toEqual({
      id: 'build',
      after: [],
      join: { policy: 'all', timeoutMs: null, stragglers: 'wait', insufficient: 'fail' },
      kind: 'run',
      hasWhen: false,
      hasEach: false,
      concurrency: null,
      onError: 'fail',
      expiresMs: null,
      compensates: true,
    })
    expect(shape.agents['build']).toMatchObject({ retry: { attempts: 4, backoffMs: 0, factor: 2, maxBackoffMs: 30_000 }, timeoutMs: null })
    expect(shape.steps[1]).toMatchObject({ after: ['build'], hasWhen: true, onError: { fallback: 'none' } })
    expect(shape.steps[2]).toMatchObject({ hasEach: true, concurrency: 2, join: { policy: 'any' } })
    expect(shape.agents['ship']).toMatchObject({ timeoutMs: 50 })
    expect(shape.steps[3]).toMatchObject({ kind: 'ask', after: ['ship'], expiresMs: 1_000 })
    expect(shape.agents['approve']).toMatchObject({ timeoutMs: null })
  })
  test('keeps its code beside the data, and is frozen', () => {
    const { steps, code, input } = insides(made)
    expect(steps['build']).toMatchObject({ kind: 'run', run: expect.any(Function), compensate: expect.any(Function) })
    expect(steps['approve']).toMatchObject({ kind: 'ask', question: expect.any(Function) })
    expect(code.output).toBeTypeOf('function')
    expect(input).toBeDefined()
    expect(
      Object.isFrozen(made) && Object.isFrozen(made.steps) && Object.isFrozen(steps) && Object.isFrozen(insides(made).shape.steps),
    ).toBe(true)
  })
  test('is begun once and gone on with in several ways', () => {
    const stem = start().step('a', { run })
    expect(stem.step('b', { run }).output().steps).toEqual(['a', 'b'])
    expect(stem.step('c', { run }).output().steps).toEqual(['a', 'c'])
    expect(stem.output().steps).toEqual(['a'])
    expect('then' in stem).toBe(false)
  })
  test('may have a step before what it depends on, and needs at least one', () => {
    expect(
      start()
        .step('b', { after: ['a'], run })
        .step('a', { run })
        .output().steps,
    ).toEqual(['b', 'a'])
    expect(() => start().output()).toThrow(/a graph needs a step/)
  })
  test('runs definitions and agents as children', () => {
    const inner = loosely({ name: 'inner', flows: ['Start -> A -> End'], agents: idle('A') })
    const writer = agent({ name: 'Writer', input: z.string(), output: z.string() })
    const { steps, shape } = insides(
      start()
        .step('i', { run: inner })
        .step('w', { input: () => 'x', run: writer })
        .output(),
    )
    expect(shape.steps.map(({ kind }) => kind)).toEqual(['child', 'child'])
    expect(steps['i']).toMatchObject({ kind: 'child', child: inner })
    expect(steps['w']).toMatchObject({ kind: 'child', input: expect.any(Function) })
    const child = (steps['w'] as { child: Definition }).child
    expect(child).toMatchObject({
      kind: 'topology',
      name: 'Writer',
      edges: [
        { from: 'Start', to: 'Writer' },
        { from: 'Writer', to: 'End' },
      ],
    })
    expect((child as Topology).agents).toEqual([writer])
  })
})

describe('a graph is refused', () => {
  test('with options that nothing would come of', () => {
    const both = { run, concurrency: 2, input: () => 1 }
    expect(codesOf(() => start().step('a', both).output())).toEqual([
      'CONCURRENCY_WITHOUT_EACH steps.a.concurrency',
      'INPUT_UNUSED steps.a.input',
    ])
    const each = () => [1]
    expect(codesOf(() => start().step('a', { run, each, concurrency: 2 }).output())).toEqual([])
  })
  test('with a cycle, and says what to do instead', () => {
    const [problem] = problemsOf(() =>
      start()
        .step('a', { after: ['a'], run })
        .output(),
    )
    expect(problem?.message).toMatch(/a loop inside of one step, or a topology as a step/)
  })
  test('with a cycle, told with its path', () => {
    expect(
      codesOf(() =>
        start()
          .step('a', { after: ['c'], run })
          .step('b', { after: ['a'], run })
          .step('c', { after: ['b'], run })
          .output(),
      ),
    ).toEqual(['CYCLE a -> b -> c -> a'])
    expect(
      codesOf(() =>
        start()
          .step('a', { after: ['a'], run })
          .output(),
      ),
    ).toEqual(['CYCLE a -> a'])
  })
  test('with each of its cycles, and not for what comes after one', () => {
    const codes = codesOf(() =>
      start()
        .step('ok', { run })
        .step('x', { after: ['y', 'ok'], run })
        .step('y', { after: ['x'], run })
        .step('late', { after: ['y'], run })
        .step('p', { after: ['q'], run })
        .step('q', { after: ['p'], run })
        .output(),
    )
    expect(codes).toEqual(['CYCLE x -> y -> x', 'CYCLE p -> q -> p'])
  })
  test('with a dependency that is no step, or named twice', () => {
    expect(
      codesOf(() =>
        start()
          .step('a', { run })
          .step('b', { after: ['zz', 'a', 'a'], run })
          .output(),
      ),
    ).toEqual(['UNKNOWN_STEP steps.b.after', 'DUPLICATE_DEPENDENCY steps.b.after'])
  })
  test('with two steps of one id', () =>
    expect(codesOf(() => start().step('a', { run }).step('a', { run }).output())).toEqual(['DUPLICATE_STEP steps.a']))
  test('with required steps that do not exist', () => {
    expect(
      codesOf(() =>
        start({ required: ['a', 'b'] })
          .step('a', { run })
          .output(),
      ),
    ).toEqual(['UNKNOWN_STEP required'])
  })
  test.each([
    [{ run: 5 }, 'BAD_OPTION steps.a.run'],
    [{}, 'BAD_OPTION steps.a.run'],
    [{ run, each: [1] }, 'BAD_OPTION steps.a.each'],
    [{ run, when: true }, 'BAD_OPTION steps.a.when'],
    [{ run, join: 'most' }, 'BAD_OPTION steps.a.join'],
    [{ run, join: 'any' }, 'BAD_JOIN steps.a.join'],
    [{ run, join: { quorum: 2 } }, 'BAD_JOIN steps.a.join'],
    [{ run, join: { policy: 'all', timeoutMs: 5 } }, 'BAD_JOIN steps.a.join.timeoutMs'],
    [{ run, join: { policy: 'all', timoutMs: 5 } }, 'BAD_JOIN steps.a.join.timoutMs'],
    [{ run, onError: 'ignore' }, 'BAD_OPTION steps.a.onError'],
    [{ run, onError: { fallback: 1, retry: 2 } }, 'BAD_OPTION steps.a.onError'],
    [{ run, onError: { fallback: () => 1 } }, 'BAD_OPTION steps.a.onError.fallback'],
    [{ run, retry: { attempts: 0 } }, 'BAD_OPTION steps.a.retry.attempts'],
    [{ run, timeoutMs: -1 }, 'BAD_OPTION steps.a.timeoutMs'],
    [{ run, concurrency: 0, each: () => [] }, 'BAD_OPTION steps.a.concurrency'],
    [{ run, after: 'b' }, 'BAD_OPTION steps.a.after'],
    [{ run, afther: [] }, 'UNKNOWN_OPTION steps.a.afther'],
    [{ run: agent({ name: '7' }) }, 'BAD_NAME steps.a.run, agents.7'],
  ])('with a step of a wrong kind: %j', (def, code) => {
    expect(codesOf(() => start().step('a', def).output())).toEqual([code])
  })
  test('with an ask that has no question or no schema', () => {
    expect(codesOf(() => start().ask('a', {}).output())).toEqual(['BAD_OPTION steps.a.question', 'BAD_OPTION steps.a.schema'])
  })
  test('with a run of its own whose id would be that of the run that undoes it', () => {
    const child = loosely({ name: 'child', flows: ['Start -> A -> End'], agents: idle('A') })
    expect(
      codesOf(() =>
        start()
          .step('undo', { run: child, input: () => 1 })
          .output(),
      ),
    ).toEqual(['RESERVED_NAME steps.undo'])
    expect(
      codesOf(() =>
        start()
          .step('undo', { run: agent({ name: 'A' }), input: () => 1 })
          .output(),
      ),
    ).toEqual(['RESERVED_NAME steps.undo'])
    expect(start().step('undo', { run }).output().steps).toEqual(['undo'])
  })
  test('with a name or a version that no store could keep, and with options that are none', () => {
    const of = (name: unknown, options: unknown) =>
      codesOf(() =>
        graph(name as never, options as never)
          .step('a', { run })
          .output(),
      )
    expect(of('a\0', {})).toEqual(['BAD_OPTION name'])
    expect(of('g', { version: '\n', continues: ['\ud800'] })).toEqual(['BAD_OPTION version', 'BAD_OPTION continues'])
    for (const none of [null, 5, 'x', []]) expect(of('g', none)).toEqual(['BAD_OPTION options'])
    expect(of('g', undefined)).toEqual([])
  })
  test('with all problems at once', () => {
    const define = () =>
      start({ required: ['zz'], limits: { maxTurns: 0 }, colour: 1 })
        .step('1', { run })
        .step('a', { after: ['a'], run: 1 })
        .output('x')
    expect(codesOf(define).sort()).toEqual(
      [
        'BAD_LIMIT limits.maxTurns',
        'BAD_NAME steps.1',
        'BAD_OPTION output',
        'BAD_OPTION steps.a.run',
        'CYCLE a -> a',
        'UNKNOWN_OPTION colour',
        'UNKNOWN_STEP required',
      ].sort(),
    )
    expect(define).toThrow(TuttiError)
  })
})
