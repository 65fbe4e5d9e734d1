import type { LanguageModelV3CallOptions } from '@ai-sdk/provider'
import type { Guardrail, ModelFactory } from 'tutti'
import { tool, topology } from 'tutti'
import { script } from 'tutti/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { playingModel } from '../../src/models/playing-model.js'
import { ScriptedFailure } from '../../src/models/scripted-failure.js'
import { deferred, journal, journalSoFar, opened, rest, untilAborted } from '../engine/opened.js'
import { saying } from './spied.js'

const effects: string[] = []
const work = tool({ description: 'Works.', input: z.object({}), run: () => void effects.push('done') })
const guarded = (...guardrails: Guardrail[]) =>
  topology({ name: 'guarded', flows: ['Start -> A -> End'], agents: { A: { tools: { work }, guardrails } } })
const working = script({ A: [{ tool: 'work', input: {} }, { finish: 'ok' }] })
const tripped = (reason: string) => ({
  status: 'failed',
  error: { code: 'AGENT_FAILED', message: expect.stringContaining(reason), data: { code: 'GUARDRAIL_TRIPPED', guardrail: 'G' } },
})

/** A model that answers when the test says so. */
function held(models: ModelFactory) {
  const gate = deferred()
  const heard = { started: 0, aborted: 0 }
  const holding: ModelFactory = (ref) => {
    const model = models(ref) as ReturnType<typeof playingModel>
    const made: typeof model = {
      ...model,
      doGenerate: async (options) => {
        heard.started++
        const signal = options.abortSignal as AbortSignal
        signal.addEventListener('abort', () => heard.aborted++)
        await Promise.race([gate.promise, untilAborted(signal)])
        return model.doGenerate(options)
      },
    }
    return made
  }
  return { models: holding, gate, heard }
}

describe('a guardrail', () => {
  test('sees what goes to the model and what comes back, and lets it through', async () => {
    effects.length = 0
    const seen: unknown[] = []
    const G: Guardrail = {
      name: 'G',
      before: ({ messages }) => void seen.push(messages.at(-1)?.role),
      after: ({ calls }) => void seen.push(calls),
    }
    await using tutti = await opened({ models: working })
    expect(await (await tutti.start(guarded(G), { input: 'go' })).output()).toBe('ok')
    expect(seen).toEqual(['user', [{ tool: 'work', input: {} }], 'tool', [{ tool: 'finish', input: { output: 'ok' } }]])
    expect(effects).toEqual(['done'])
  })

  test('before the call stops it: the model is not called', async () => {
    const { models, heard } = held(working)
    await using tutti = await opened({ models })
    const result = await (await tutti.start(guarded({ name: 'G', before: () => 'not this' }), { input: 'go' })).result()
    expect(result).toMatchObject(tripped('not this'))
    expect(heard.started).toBe(0)
  })

  test('after the call stops the turn before any tool starts; one that throws has tripped', async () => {
    effects.length = 0
    await using tutti = await opened({ models: working })
    const after = (): never => {
      throw new Error('can not tell')
    }
    expect(await (await tutti.start(guarded({ name: 'G', after }), { input: 'go' })).result()).toMatchObject(tripped('can not tell'))
    expect(effects).toEqual([])
  })

  test.each(['while the model is called', 'after it has answered'])(
    'F1 beside the call that trips %s: no tool ever starts',
    async (when) => {
      effects.length = 0
      const { models, gate, heard } = held(working)
      const verdict = deferred<string | null>()
      await using tutti = await opened({ models })
      const run = await tutti.start(guarded({ name: 'G', parallel: true, before: () => verdict.promise }), { input: 'go' })
      await rest()
      expect(heard.started).toBe(1)
      if (when === 'after it has answered') {
        gate.resolve()
        await rest()
        expect(effects).toEqual([])
      }
      verdict.resolve('stop that')
      expect(await run.result()).toMatchObject(tripped('stop that'))
      expect(effects).toEqual([])
      if (when === 'while the model is called') expect(heard.aborted).toBe(1)
    },
  )

  test.each(['the model', 'the guardrail'])(
    'F2 when %s fails first, the other is awaited, both are journaled, and nothing lives on',
    async (first) => {
      const verdict = deferred<string | null>()
      const answer = deferred<never>()
      let live = 0
      const alive = async <T>(promise: Promise<T>): Promise<T> => {
        live++
        return promise.finally(() => live--)
      }
      const models: ModelFactory = () => {
        const model = playingModel('tutti', 'test', () => ({ text: 'x' }))
        const failing: typeof model = {
          ...model,
          doGenerate: (options) => alive(Promise.race([answer.promise, untilAborted(options.abortSignal as AbortSignal)])),
        }
        return failing
      }
      await using tutti = await opened({ models })
      const run = await tutti.start(guarded({ name: 'G', parallel: true, before: () => alive(verdict.promise) }), { input: 'go' })
      await rest()
      expect(live).toBe(2)
      if (first === 'the model') {
        answer.reject(new Error('model broke'))
        await rest()
        // Whatever the guardrail says decides, so it is heard.
        expect((await journalSoFar(run)).at(-1)).toMatchObject({ type: 'activity.failed', name: 'model' })
        verdict.reject(new Error('guard broke'))
      } else verdict.reject(new Error('guard broke'))
      expect(await run.result()).toMatchObject(tripped('guard broke'))
      expect(live).toBe(0)
      const failed = (await journal(run)).flatMap((event) => (event.type === 'activity.failed' ? [event.name] : []))
      expect(failed.sort()).toEqual(['G', 'model'])
      answer.reject(new Error('too late'))
    },
  )

  test('F2 that trips while the model is left alone for an hour is not waited for as long, and the model is not called again', async () => {
    const verdict = deferred<string | null>()
    let calls = 0
    const models: ModelFactory = () =>
      playingModel('tutti', 'test', () => {
        calls++
        throw new ScriptedFailure({ status: 429, retryAfterMs: 3_600_000 })
      })
    await using tutti = await opened({ models })
    const run = await tutti.start(guarded({ name: 'G', parallel: true, before: () => verdict.promise }), { input: 'go' })
    await rest()
    verdict.resolve('stop that')
    expect(await run.result()).toMatchObject(tripped('stop that'))
    expect(calls).toBe(1)
  })

  test('that trips decides, whoever is first, and the first declared of several', async () => {
    const guards = ['one', 'two'].map(
      (name): Guardrail => ({ name, parallel: true, before: async () => (await rest(name === 'one' ? 30 : 1), name) }),
    )
    await using tutti = await opened({ models: working })
    const result = await (await tutti.start(guarded(...guards), { input: 'go' })).result()
    expect(result).toMatchObject({ status: 'failed', error: { data: { guardrail: 'one' } } })
  })
})

test('F3 tools of one turn are aborted and awaited together when the turn is, and nothing happens after the end', async () => {
  const log: string[] = []
  const slow = tool({
    description: 'Takes its time.',
    input: z.object({ name: z.string() }),
    run: async ({ name }, { signal }) => {
      if (name === 'b') throw new Error('at once')
      await untilAborted(signal).catch(() => {})
      await rest(10)
      log.push(`${name} ended`)
    },
  })
  const tools = topology({ name: 'tools', flows: ['Start -> A -> End'], agents: { A: { tools: { slow } } } })
  const models: ModelFactory = () =>
    playingModel('tutti', 'test', () => ({ calls: ['a', 'b', 'c'].map((name) => ({ name: 'slow', input: { name } })) }))
  await using tutti = await opened({ models })
  const run = await tutti.start(tools)
  await rest()
  await run.cancel()
  expect(await run.result()).toMatchObject({ status: 'cancelled' })
  expect(log.sort()).toEqual(['a ended', 'c ended'])
  const events = await journal(run)
  await rest()
  expect(await journal(run)).toHaveLength(events.length)
  expect(events.at(-1)?.type).toBe('run.cancelled')
})

test('what guardrails and models are shown is frozen: none can change what the next call is made of', async () => {
  const tamper = ({ messages }: { messages: readonly { content: unknown }[] }) => {
    for (const message of messages) (message as { content: unknown }).content = 'something else'
  }
  const solo = (guardrails: Guardrail[]) => topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { guardrails } } })
  await using tutti = await opened({ models: script({ A: ['done'] }) })
  for (const guardrail of [
    { name: 'g', before: tamper },
    { name: 'g', before: (call: object) => void Object.assign(call, { messages: [] }) },
    { name: 'g', after: (answer: object) => void Object.assign(answer, { text: '' }) },
  ])
    expect(await (await tutti.start(solo([guardrail]))).result()).toMatchObject({
      status: 'failed',
      error: { data: { code: 'GUARDRAIL_TRIPPED', reason: expect.stringMatching(/read only/) as string } },
    })

  const model = saying(() => [{ type: 'text', text: 'done' }])
  const tampering = {
    ...model,
    doGenerate: (options: LanguageModelV3CallOptions) => {
      tamper({ messages: options.prompt })
      return model.doGenerate(options)
    },
  }
  await using other = await opened({ models: () => tampering })
  expect(await (await other.start(solo([]))).result()).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED' } })
})
