import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LanguageModelV3, LanguageModelV3CallOptions } from '@ai-sdk/provider'
import { agent, graph, type LanguageModel, type ModelFactory, topology, TuttiError } from 'tutti'
import { record, replay, script } from 'tutti/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CallPlace } from '../../src/models/call-place.js'
import { firstDifference } from '../../src/models/first-difference.js'
import { answerOf } from '../../src/models/model-answer.js'
import type { ModelSource } from '../../src/models/model-factory.js'
import { streamOf } from '../../src/models/playing-model.js'
import { deferred, opened, untilAborted } from '../engine/opened.js'
import { callWith, partsOf, saidBy, streamedBy } from './call.js'
import { OpenAiServer } from './openai-server.js'
import { saying } from './spied.js'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-cassette-'))
  file = join(folder, 'deep/tape.jsonl')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const lines = () => readFileSync(file, 'utf8').trim().split('\n')
/** The same call, with the same text, whatever the place. */
const call = (text: string, place: Partial<CallPlace> = {}, more: Partial<LanguageModelV3CallOptions> = {}) =>
  callWith({ request: text, ...place }, more)

describe('a recorded call', () => {
  test('is played again with no server, at once and as a stream, however it was recorded', async () => {
    const rich = { text: 'grüße, and so on', calls: [{ name: 'look', input: { at: 'x' } }], usage: { input: 12, output: 3 } }
    const server = await OpenAiServer.start(() => rich)
    const model = `${server.url}#tiny`
    const recording = record(file)
    const asked = [call('a', { branch: 'r.0' }), call('a', { branch: 'r.1' })] as const
    const said = await saidBy(await recording({ agent: 'Writer', model }), asked[0])
    expect(await streamedBy(await recording({ agent: 'Writer', model }), asked[1])).toMatchObject({ text: said.text })
    await recording.close()
    await server[Symbol.asyncDispose]()

    const played = replay(file)({ agent: 'Writer', model })
    expect(played).toMatchObject({ provider: 'compatible.chat', modelId: 'tiny' })
    for (const options of asked) {
      const again = await saidBy(played, options)
      expect(again).toMatchObject({ text: rich.text, calls: [{ name: 'look', input: { at: 'x' } }] })
      expect(await streamedBy(played, options)).toEqual(again)
    }
    const result = await (played as LanguageModelV3).doGenerate(asked[0])
    expect(result.usage).toMatchObject({ inputTokens: { total: 12 }, outputTokens: { total: 3 } })
  })

  test.each([{ unified: 'other', raw: undefined }, 'unknown'])(
    'whose end was not said (%o) is played as one that has ended',
    async (reason) => {
      const said = { content: [{ type: 'text', text: 'all of it' }], finishReason: reason, usage: {}, warnings: [] }
      const recording = record(file, () => ({ ...saying(() => []), doGenerate: async () => said }) as unknown as LanguageModel)
      await saidBy(await recording({ agent: 'Writer' }), call('a'))
      await recording.close()
      const heard = await answerOf(replay(file)({ agent: 'Writer' }) as LanguageModel, call('a'), () => {})
      expect(heard.parts).toEqual([{ type: 'text', text: 'all of it' }])
    },
  )

  test('leaves no key in the file, and the file to nobody else', async () => {
    const secret = 'sk-very-secret-key'
    process.env['OPENAI_COMPATIBLE_API_KEY'] = secret
    try {
      await using server = await OpenAiServer.start(({ headers }) => `you sent ${headers.authorization}`)
      await using recording = record(file)
      const options = call(`my key is ${secret}`, {}, { headers: { 'x-secret': secret } })
      await saidBy(await recording({ agent: 'Writer', model: `${server.url}#tiny` }), options)
      expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${secret}`)
      expect(lines()).toHaveLength(2)
      expect(lines()[1]).toContain('my key is [OPENAI_COMPATIBLE_API_KEY]')
      expect(lines()[1]).not.toMatch(/very-secret|x-secret/)
      expect(statSync(file).mode & 0o077).toBe(0)
      expect((await saidBy(replay(file)({ agent: 'Writer' }), options)).text).toBe('you sent Bearer [OPENAI_COMPATIBLE_API_KEY]')
    } finally {
      delete process.env['OPENAI_COMPATIBLE_API_KEY']
    }
  })

  test('that was repeated until it went well is played as it went well; one that failed for good fails', async () => {
    const models = script({ Writer: [{ error: { status: 429 } }, 'at last'], Critic: [{ error: { status: 400 } }] })
    const recording = record(file, models)
    const writer = await recording({ agent: 'Writer' })
    await expect(saidBy(writer, call('a', { index: 0 }))).rejects.toThrow()
    await saidBy(writer, call('a', { index: 1 }))
    await expect(saidBy(await recording({ agent: 'Critic' }), call('a'))).rejects.toThrow()
    const open = replay(file)
    await recording.close()
    for (const models of [open, replay(file)]) {
      expect((await saidBy(models({ agent: 'Writer' }), call('a'))).text).toBe('at last')
      await expect(saidBy(models({ agent: 'Critic' }), call('a'))).rejects.toMatchObject({
        message: 'the script says 400',
        statusCode: 400,
      })
    }
  })
})

test('a stream that breaks off, or ends with an error, is no answer: it fails in the same words when it is played', async () => {
  const finish = { type: 'finish', finishReason: { unified: 'error', raw: undefined }, usage: {} }
  const broken = { type: 'error', error: new Error('overloaded') }
  const text = [
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'half' },
  ]
  for (const parts of [[...text, broken, finish], text]) {
    const model = {
      ...script({ W: [''] })({ agent: 'W' }),
      doStream: async () => ({ stream: streamOf(parts) }),
    } as unknown as LanguageModel
    await using recording = record(file, () => model)
    await partsOf(await recording({ agent: 'Writer' }), call('a'))
    expect(lines()).toHaveLength(2)
    const words = parts === text ? 'the model stopped in the middle of its answer' : 'overloaded'
    await expect(partsOf(replay(file)({ agent: 'Writer' }), call('a'))).rejects.toThrow(words)
  }
})

test('two recordings of the same calls are the same file, whichever call was over first', async () => {
  const places = [{ branch: 'r.10' }, { branch: 'r.9' }, { branch: 'r.9', turn: 2 }, { branch: 'r' }, { branch: 'r', call: 1 }]
  const files: string[] = []
  for (const order of [places, [...places].reverse()]) {
    const recording = record(file, script({ Writer: ({ branch, turn }) => `${branch}/${turn}` }))
    for (const place of order) await saidBy(await recording({ agent: 'Writer' }), call('a', place))
    await recording.close()
    files.push(readFileSync(file, 'utf8'))
  }
  expect(files[0]).toBe(files[1])
  expect(
    lines()
      .slice(1)
      .map((line) => (JSON.parse(line) as { branch: string }).branch),
  ).toEqual(['r', 'r', 'r.9', 'r.9', 'r.10'])
})

test.each([
  ['another branch had failed', { policy: 'all', stragglers: 'cancel' } as const, undefined],
  ['it took too long', 'all' as const, 20],
])('a call that was given up because %s is not answered when it is played, and the run fails as it did', async (_, join, timeoutMs) => {
  const team = topology({
    name: 'team',
    flows: ['Start -> Hub -> End', 'Hub <-> Slow | Bad'],
    agents: {
      Hub: { act: { request: (turn) => turn.fork(['Slow', 'Bad'], { join }), join: (turn) => turn.finish('done') } },
      Slow: { ...(timeoutMs !== undefined && { timeoutMs }) },
      Bad: {},
    },
  })
  const models: ModelFactory = ({ agent }) => {
    const model = saying(() => [{ type: 'text', text: 'fine' }])
    const failing = async ({ abortSignal }: LanguageModelV3CallOptions): Promise<never> => {
      if (agent === 'Slow') await untilAborted(abortSignal as AbortSignal)
      throw new Error('no such model')
    }
    return agent === 'Slow' || timeoutMs === undefined ? { ...model, doGenerate: failing } : model
  }
  const causeOf = async (source: ModelSource): Promise<unknown> => {
    await using tutti = await opened({ models: source })
    const result = await (await tutti.start(team)).result()
    return result.status === 'failed' && [result.error.code, result.error.cause?.at.agent, result.error.cause?.code]
  }
  const recording = record(file, models)
  const recorded = await causeOf(recording)
  await recording.close()
  expect(recorded).toEqual(timeoutMs === undefined ? ['JOIN_FAILED', 'Bad', 'MODEL_FAILED'] : ['JOIN_FAILED', 'Slow', 'TIMEOUT'])
  expect(await causeOf(replay(file))).toEqual(recorded)
})

test('what was answered to one child run is played to that one, whichever was over first', async () => {
  const dice = graph('dice')
    .step('roll', { each: () => [0, 1, 2], input: () => 'roll', run: agent({ name: 'X' }) })
    .step('again', { after: ['roll'], input: () => 'roll', run: agent({ name: 'X' }) })
    .output()
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
  ]) {
    let rolls = 0
    const ended = [deferred(), deferred(), deferred(), deferred()]
    const recording = record(file, () => {
      const model = saying(() => [])
      const doGenerate = async (): Promise<never> => {
        const roll = rolls++
        const before = order[order.indexOf(roll) - 1]
        if (before !== undefined) await ended[before]?.promise
        ended[roll]?.resolve()
        return { content: [{ type: 'text', text: String(roll) }], finishReason: 'stop', usage: {}, warnings: [] } as never
      }
      return { ...model, doGenerate } as LanguageModel
    })
    await using tutti = await opened({ models: recording })
    const recorded = await tutti.execute(dice)
    await recording.close()
    expect(recorded).toEqual({ roll: ['0', '1', '2'], again: '3' })
    await using again = await opened({ models: replay(file) })
    expect(await again.execute(dice)).toEqual(recorded)
  }
})

test.each([
  [undefined, undefined],
  [null, { stream: null }],
  [{}, {}],
  [{ content: 'hello' }, { stream: 'hello' }],
])('what is no answer (%j, %j) is recorded as a call that failed so, and what else was recorded is played', async (said, stream) => {
  const strange = { ...saying(() => []), doGenerate: async () => said, doStream: async () => stream } as unknown as LanguageModel
  const recording = record(file, ({ agent }) => (agent === 'Odd' ? strange : saying(() => [{ type: 'text', text: 'well' }])))
  await saidBy(await recording({ agent: 'Writer' }), call('a'))
  const odd = await recording({ agent: 'Odd' })
  const once = call('a', { branch: 'r.0' })
  const inParts = call('a', { branch: 'r.1' })
  const isNone = 'what it answers is no answer of a model'
  await expect(answerOf(odd, once, null)).rejects.toThrow(isNone)
  await expect(answerOf(odd, inParts, () => {})).rejects.toThrow(isNone)
  await recording.close()
  const played = replay(file)
  expect(await saidBy(played({ agent: 'Writer' }), call('a'))).toMatchObject({ text: 'well' })
  for (const options of [once, inParts]) await expect(saidBy(played({ agent: 'Odd' }), options)).rejects.toThrow(isNone)
})

describe('of two runs that ask the same', () => {
  const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: {} } })
  const ids = ['one', 'two']
  /** Records a run of each id, at the same time, which are over in this order; `says` is told the id. */
  const recorded = async (order: readonly string[], says: (run: string) => string, isClosed = true): Promise<void> => {
    const over = new Map(ids.map((id) => [id, deferred()]))
    const recording = record(file, () => {
      const model = saying(({ run }) => [{ type: 'text', text: says(run) }])
      const doGenerate = async (options: LanguageModelV3CallOptions) => {
        const { run } = (options.providerOptions as unknown as { tutti: CallPlace }).tutti
        await over.get(order[order.indexOf(run) - 1] ?? '')?.promise
        return model.doGenerate(options)
      }
      return { ...model, doGenerate }
    })
    await using tutti = await opened({ models: recording })
    const runs = await Promise.all(ids.map((id) => tutti.start(solo, { input: 'same', id })))
    await Promise.all(
      runs.map(async (run) => {
        expect(await run.output()).toBe(says(run.id))
        over.get(run.id)?.resolve()
      }),
    )
    if (isClosed) await recording.close()
  }
  const played = async (...runs: readonly { readonly id?: string }[]): Promise<unknown[]> => {
    await using tutti = await opened({ models: replay(file) })
    const results = runs.map(async (how) => (await tutti.start(solo, { input: 'same', ...how })).result())
    return (await Promise.all(results)).map((result) =>
      result.status === 'failed' ? result.error.message : result.status === 'succeeded' && result.output,
    )
  }

  test.each([
    ['one', 'two', true],
    ['two', 'one', true],
    ['one', 'two', false],
    ['two', 'one', false],
  ])('each is played what it was answered itself (%s was over before %s, closed: %s)', async (first, second, isClosed) => {
    await recorded([first, second], (run) => `an answer to ${run}`, isClosed)
    expect(await played({ id: 'two' }, { id: 'one' })).toEqual(['an answer to two', 'an answer to one'])
  })

  test('one of another id is played neither of two answers, and is told whose they are', async () => {
    await recorded(ids, (run) => `an answer to ${run}`)
    const [message] = await played({ id: 'three' })
    expect(message).toMatch(
      /has 2 different answers to the same call of A, branch r, turn 1, call 0, of the runs one, two, and can't tell which is that of the run three: start each run with the id/,
    )
  })

  test('all are played what both were answered, whatever they are called, and the file has no ids', async () => {
    await recorded(ids, () => 'the same')
    expect(await played({}, { id: 'three' }, { id: 'one' })).toEqual(['the same', 'the same', 'the same'])
    expect(lines()).toHaveLength(2)
    expect(lines()[1]).not.toContain('"run"')
  })

  test('an answer is not taken for a second try of another, though they have the same id', async () => {
    const models = script({ A: ['first', 'second'] })
    const recording = record(file, models)
    const model = await recording({ agent: 'A' })
    await saidBy(model, call('a', { index: 0 }))
    await saidBy(model, call('a', { index: 1 }))
    await recording.close()
    await expect(saidBy(replay(file)({ agent: 'A' }), call('a'))).rejects.toThrow('has 2 different answers to the same call of A')
  })

  test('an answer that ended with an error is tried again, and what came of that is played', async () => {
    let calls = 0
    const model = saying(() => [{ type: 'text', text: `try ${++calls}` }])
    const failing = async (options: LanguageModelV3CallOptions) => {
      const result = await model.doGenerate(options)
      return calls > 1 ? result : { ...result, finishReason: { unified: 'error' as const, raw: 'error' } }
    }
    const recording = record(file, () => ({ ...model, doGenerate: failing }))
    const again = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { retry: { backoffMs: 1 } } } })
    await using tutti = await opened({ models: recording })
    expect(await tutti.execute(again, { input: 'same' })).toBe('try 2')
    await recording.close()
    expect(await played({})).toEqual(['try 2'])
  })
})

test('a call that failed is played in the same words and with its status, at once, and what follows from it is the same', async () => {
  const team = topology({
    name: 'team',
    flows: ['Start -> Hub', 'Hub <-> A', 'Hub -> W -> End'],
    agents: {
      Hub: {
        act: {
          request: (turn) => turn.fork(['A'], { join: 'settled' }),
          join: (turn, { slots: [slot] }) => turn.invoke('W', slot?.status === 'failed' ? [slot.error.message, slot.error.data] : 'fine'),
        },
      },
      A: { retry: { attempts: 2, backoffMs: 1 } },
      W: {},
    },
  })
  const recording = record(file, script({ A: [{ error: { status: 503 } }, { error: { status: 503 } }], W: ['never mind'] }))
  await using tutti = await opened({ models: recording })
  expect(await tutti.execute(team)).toBe('never mind')
  await using open = await opened({ models: replay(file) })
  expect(await open.execute(team)).toBe('never mind')
  await recording.close()
  await using again = await opened({ models: replay(file) })
  expect(await again.execute(team)).toBe('never mind')
})

describe('a call that was not recorded fails, and says what is nearest:', () => {
  const long = 'x'.repeat(100)
  const missed = async (options: LanguageModelV3CallOptions, agent = 'Writer') => {
    await using recording = record(file, script({ Writer: ['one', 'two'] }))
    const model = await recording({ agent: 'Writer' })
    await saidBy(model, call(`${long} the blue word`, { branch: 'r.0' }))
    await saidBy(model, call('something else', { branch: 'r.1', turn: 2, index: 1 }))
    const error: unknown = await saidBy(replay(file)({ agent, model: 'openai/never-called' }), options).catch((thrown: unknown) => thrown)
    return (error as Error).message.replace(file, 'tape')
  }

  test('the same place with another request, and where it differs first', async () => {
    expect(await missed(call(`${long} the green word`, { branch: 'r.0' }))).toMatch(
      /^tape has no such call of Writer, branch r\.0, turn 1, call 0: another was recorded there; it differs at prompt\[0\]\.content\[0\]\.text, from character 106: recorded "…x+ the blue word", now "…x+ the green word"$/,
    )
  })

  test('the same request at another place', async () => {
    expect(await missed(call('something else', { branch: 'r.1', turn: 3 }))).toBe(
      'tape has no such call of Writer, branch r.1, turn 3, call 0: the same was recorded at Writer, branch r.1, turn 2, call 0',
    )
  })

  test('the request that is most alike', async () => {
    expect(await missed(call(`${long} the blue world`, { branch: 'r.7' }))).toContain(
      'the nearest is Writer, branch r.0, turn 1, call 0; it differs at prompt',
    )
  })

  test('nothing before a call of its branch, where a run was recorded from its middle on', async () => {
    expect(await missed(call('the beginning', { branch: 'r.1' }))).toBe(
      'tape has no such call of Writer, branch r.1, turn 1, call 0: nothing was recorded of its branch before Writer, branch r.1, turn 2, call 0: what was asked in another process is on another tape, and each recording writes its file anew',
    )
  })

  test('the first call of its branch, in whatever order several runs were recorded', async () => {
    const recording = record(file, () => saying(() => [{ type: 'text', text: 'x' }]))
    const model = await recording({ agent: 'Writer' })
    await saidBy(model, call('of one run', { run: 'one', turn: 3 }))
    await saidBy(model, call('of the other', { run: 'two', turn: 2 }))
    await expect(saidBy(replay(file)({ agent: 'Writer' }), call('the beginning'))).rejects.toThrow(
      'nothing was recorded of its branch before Writer, branch r, turn 2, call 0',
    )
  })

  test('nothing of this agent at all', async () => {
    expect(await missed(call('a'), 'Critic')).toContain('nothing of Critic was recorded')
  })

  test('other tools than there were', async () => {
    const tools = [{ type: 'function' as const, name: 'look', inputSchema: { type: 'object' as const } }]
    expect(await missed(call('something else', { branch: 'r.1', turn: 2 }, { tools }))).toContain(
      'it differs at tools: recorded nothing, now [{"type":"function"',
    )
  })
})

test.each([
  ['no file', null, /can't be read$/],
  ['no JSON', 'hello', /is no cassette: line 1 is no JSON$/],
  ['something else', '{"a":1}', /it does not begin as a cassette does$/],
  ['a later version', '{"cassette":"tutti","version":2}', /a later version of tutti has written it$/],
  ['a damaged line', '{"cassette":"tutti","version":1}\n{"agent":"Writer"}', /line 2 is no call of a model$/],
])('what is no cassette is refused when it is opened: %s', (_, text, message) => {
  const path = join(folder, 'bad.jsonl')
  if (text !== null) writeFileSync(path, text)
  let error: unknown
  try {
    replay(path)
  } catch (thrown) {
    error = thrown
  }
  expect(TuttiError.is(error, 'INVALID_INPUT')).toBe(true)
  expect((error as Error).message).toMatch(message)
})

test.each([
  [{ a: [1, { b: 'x' }] }, { a: [1, { b: 'x' }] }, undefined],
  [{ a: [1, 2] }, { a: [1, 3] }, 'a[1]: recorded 2, now 3'],
  [{ a: [1] }, { a: [1, 2] }, 'a[1]: recorded nothing, now 2'],
  [{ a: 1 }, { b: 1 }, 'a: recorded 1, now nothing'],
  ['abc', 'abd', 'the whole, from character 3: recorded "abc", now "abd"'],
  [null, {}, 'the whole: recorded null, now {}'],
])('the first difference of %j and %j', (a, b, difference) => {
  expect(firstDifference(a, b)).toBe(difference)
})
