import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LanguageModelV3 } from '@ai-sdk/provider'
import { TuttiError } from 'tutti'
import { describe, expect, test } from 'vitest'
import { explainModels, resolveModel } from '../../src/models/resolve.js'
import { simModel } from '../../src/models/sim.js'
import { root } from '../house/workshop.js'
import { OpenAiServer } from './openai-server.js'

const secret = 'sk-very-secret'
const resolved = async (model: LanguageModelV3 | string | undefined, env: Record<string, string> = {}) =>
  (await resolveModel({ agent: 'Writer', model }, { env })) as LanguageModelV3
const shown = async (model: string | undefined, env: Record<string, string>) => {
  const { provider, modelId } = await resolved(model, env)
  return `${provider} ${modelId}`
}

describe('the model of an agent is', () => {
  test('the object that it names', async () => {
    const own = simModel('x')
    expect(await resolved(own, { OPENAI_API_KEY: secret })).toBe(own)
  })

  test('what the factory gives, which sees what the agent names; undefined leaves it to the rest', async () => {
    const own = simModel('x')
    const seen: unknown[] = []
    const models = (ref: { agent: string }) => {
      seen.push(ref)
      return ref.agent === 'Writer' ? own : undefined
    }
    expect(await resolveModel({ agent: 'Writer', model: 'openai/x' }, { env: {}, models })).toBe(own)
    expect(((await resolveModel({ agent: 'Critic' }, { env: {}, models })) as LanguageModelV3).modelId).toBe('sim')
    expect(seen).toEqual([{ agent: 'Writer', model: 'openai/x' }, { agent: 'Critic' }])
    expect(seen.every((ref) => Object.isFrozen(ref))).toBe(true)
  })

  test('the provider and the id in the text that it names', async () => {
    expect(await shown('openai/gpt-5', { OPENAI_API_KEY: secret })).toBe('openai.responses gpt-5')
    expect(await shown('anthropic/claude-opus-5', { ANTHROPIC_API_KEY: secret })).toBe('anthropic.messages claude-opus-5')
    expect(await shown('openrouter/meta/llama:free', { OPENROUTER_API_KEY: secret })).toBe('openrouter.chat meta/llama:free')
    expect(await shown('http://127.0.0.1:1/v1#llama3.2:1b', {})).toBe('compatible.chat llama3.2:1b')
    expect(await shown('sim', { OPENAI_API_KEY: secret })).toBe('tutti sim')
  })

  test('what the environment has a key for, in a fixed order; TUTTI_MODEL goes before', async () => {
    const all = { OPENAI_API_KEY: secret, ANTHROPIC_API_KEY: secret, OPENROUTER_API_KEY: secret }
    expect(await shown(undefined, all)).toMatch(/^openai\.responses /)
    expect(await shown(undefined, { ...all, OPENAI_API_KEY: '' })).toMatch(/^anthropic\.messages /)
    expect(await shown(undefined, { OPENROUTER_API_KEY: secret })).toMatch(/^openrouter\.chat /)
    expect(await shown(undefined, { ...all, TUTTI_MODEL: 'sim' })).toBe('tutti sim')
    expect(await shown(undefined, { ...all, OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' })).toMatch(/^compatible\.chat /)
  })

  test('simulated, if nothing says otherwise', async () => {
    expect(await shown(undefined, {})).toBe('tutti sim')
  })
})

const hi = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }] }

test('a server of one’s own is asked with no key; a key that is set for it is sent, and that of OpenAI is not', async () => {
  await using server = await OpenAiServer.start(() => 'hello')
  const name = `${server.url}#tiny`
  await (await resolved(name, { OPENAI_API_KEY: secret })).doGenerate(hi)
  await (await resolved(name, { OPENAI_COMPATIBLE_API_KEY: 'local' })).doGenerate(hi)
  await (await resolved(undefined, { OPENAI_BASE_URL: `${server.url}/`, OPENAI_API_KEY: secret })).doGenerate(hi)
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, 'Bearer local', `Bearer ${secret}`])
  expect(server.requests[0]?.body.model).toBe('tiny')
})

describe('what cannot be had is said, with what to do, and no key is shown:', () => {
  test.each<[string, Record<string, string>, RegExp, RegExp]>([
    ['openai/gpt-5', { ANTHROPIC_API_KEY: secret }, /^Writer has no model: OPENAI_API_KEY is not set$/, /set OPENAI_API_KEY/],
    ['gpt-5', { OPENAI_API_KEY: secret }, /there is no model 'gpt-5'/, /name it 'openai\/…'/],
    ['openai/', {}, /there is no model 'openai\/'/, /name it/],
    ['http://127.0.0.1:1/v1', {}, /it is not said which model at http:\/\/127\.0\.0\.1:1\/v1$/, /#model/],
    ['http://#x', {}, /is no URL$/, /#model/],
    [
      `http://me:${secret}@localhost/v1#x`,
      {},
      /^Writer has no model: the address of the model at localhost has a user/,
      /OPENAI_COMPATIBLE/,
    ],
    [
      `http://localhost/v1?key=${secret}#x`,
      {},
      /the address of the model at localhost has a user, a password or a \?/,
      /OPENAI_COMPATIBLE/,
    ],
    [`http://localhost/v1?key=${secret}`, {}, /the address of the model at localhost has/, /OPENAI_COMPATIBLE/],
  ])('%s', async (model, env, message, hint) => {
    const error: unknown = await resolved(model, env).catch((thrown: unknown) => thrown)
    expect(TuttiError.is(error, 'MODEL_UNAVAILABLE')).toBe(true)
    expect((error as TuttiError).message).toMatch(message)
    expect((error as TuttiError).hint).toMatch(hint)
    expect(JSON.stringify([error, String(error), (error as Error).stack])).not.toContain(secret)
  })

  test.each([{}, null, 'openai/gpt-5', () => {}])('what is no model, from a factory or as what the agent names: %s', async (made) => {
    const models = () => made as never
    const named = typeof made === 'object' && made !== null ? [resolved(made as never, {})] : []
    for (const resolving of [resolveModel({ agent: 'Writer' }, { env: {}, models }), ...named]) {
      const error: unknown = await resolving.catch((thrown: unknown) => thrown)
      expect(TuttiError.is(error, 'MODEL_UNAVAILABLE')).toBe(true)
      expect((error as TuttiError).message).toMatch(/^Writer has no model: what .+ is no language model: /)
      expect((error as TuttiError).hint).toMatch(/AI SDK/)
    }
  })

  test('a provider that is not installed', () => {
    // Where no node_modules is above, as with somebody who has installed nothing else.
    const folder = mkdtempSync(join(tmpdir(), 'tutti-bare-'))
    try {
      for (const layer of ['kernel', 'define', 'models']) cpSync(join(root, 'dist', layer), join(folder, layer), { recursive: true })
      writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
      const program = `
        import { resolveModel } from './models/resolve.js'
        for (const model of ['openai/x', 'anthropic/x', 'http://127.0.0.1:1/v1#x'])
          await resolveModel({ agent: 'Writer', model }, { env: { OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' } }).catch(({ code, message, hint }) =>
            console.log([code, message, hint].join('; ')))`
      const said = execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: folder, encoding: 'utf8' })
      expect(said.trim().split('\n')).toEqual(
        ['@ai-sdk/openai', '@ai-sdk/anthropic', '@ai-sdk/openai-compatible'].map(
          (name) => `MODEL_UNAVAILABLE; Writer has no model: the package ${name} is not installed; npm install ${name}`,
        ),
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

test('which model is taken, and why, is explained with no key in it', () => {
  const explained = (env: Record<string, string>) => Object.values(explainModels(env)).join(': ')
  expect(explained({})).toBe(
    'sim: none of TUTTI_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENROUTER_API_KEY is set; its answers are simulated',
  )
  expect(explained({ OPENAI_API_KEY: secret })).toMatch(/^openai\/\S+: OPENAI_API_KEY is set; TUTTI_MODEL names another model$/)
  expect(explained({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', TUTTI_MODEL: 'http://127.0.0.1:2/v1#b' })).toBe(
    'http://127.0.0.1:2/v1#b: TUTTI_MODEL is set',
  )
  expect(explained({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' })).toMatch(/^http:\/\/127\.0\.0\.1:1\/v1#\S+: OPENAI_BASE_URL is set;/)
  expect(explained({ TUTTI_MODEL: 'nonsense' })).toMatch(/^none: there is no model 'nonsense'; name it/)
  expect(explained({ OPENAI_BASE_URL: `https://x:${secret}@example.com/v1`, OPENAI_API_KEY: secret })).not.toContain(secret)
})
