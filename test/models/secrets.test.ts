import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { topology } from 'tutti'
import { record } from 'tutti/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { secretsOf, withoutSecrets } from '../../src/models/secrets.js'
import { opened } from '../engine/opened.js'
import { OpenAiServer } from './openai-server.js'
import { saying } from './spied.js'

afterEach(() => vi.unstubAllEnvs())

const key = 'key-of-nobody-0123456789'
const raise = (message: string): never => {
  throw new Error(message)
}

/** All that is left of a run in which the model failed: its result, its journal and its cassette. */
async function leftOf(model: object | string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-secrets-'))
  try {
    const models = record(join(folder, 'tape.jsonl'))
    await using tutti = await opened({ models })
    const asked = topology({
      name: 'asked',
      flows: ['Start -> A -> End'],
      agents: { A: { model: model as string, retry: { attempts: 1 } } },
    })
    const run = await tutti.start(asked, { input: 'hi' })
    const result = await run.result()
    expect(result.status).toBe('failed')
    const events: unknown[] = []
    for await (const event of run.events()) events.push(event)
    await models.close()
    return JSON.stringify([result, events]) + readFileSync(join(folder, 'tape.jsonl'), 'utf8')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('a server that repeats the key that it was sent', () => {
  const echo = () => OpenAiServer.start(({ headers }) => ({ status: 401, message: `who is ${headers.authorization}?` }))

  test('tells it to nobody: it is in no result, no journal and no cassette', async () => {
    vi.stubEnv('OPENAI_COMPATIBLE_API_KEY', key)
    await using server = await echo()
    const left = await leftOf(`${server.url}#tiny`)
    expect(server.requests[0]?.headers.authorization).toContain(key)
    expect(left).toContain('who is Bearer [OPENAI_COMPATIBLE_API_KEY]?')
    expect(left).not.toContain(key)
  })

  test('nor if the environment does not have it', async () => {
    await using server = await echo()
    const left = await leftOf(createOpenAICompatible({ name: 'own', baseURL: server.url, apiKey: key })('tiny'))
    expect(left).toContain('who is [authorization]?')
    expect(left).not.toContain(key)
  })

  test('nor the rest of one that only begins as keys do', async () => {
    await using server = await echo()
    for (const half of ['key-id-0123:', 'corp/sk-01234567.']) {
      const apiKey = `${half}half-of-a-key`
      const left = await leftOf(createOpenAICompatible({ name: 'own', baseURL: server.url, apiKey })('tiny'))
      expect(left).toContain('who is [authorization]?')
      expect(left).not.toContain('half-of-a-key')
    }
  })

  test.each([
    ['createAnthropic', (baseURL: string) => createAnthropic({ baseURL, apiKey: key })('claude')],
    ['createOpenAI', (baseURL: string) => createOpenAI({ baseURL, apiKey: key })('gpt')],
    ['createOpenAICompatible', (baseURL: string) => createOpenAICompatible({ name: 'own', baseURL, headers: { 'x-key': key } })('tiny')],
  ])('nor in words of its own, where %s was given it', async (_, made) => {
    const server = createServer((request, response) => {
      request.resume()
      const sent = Object.values(request.headers).find((value) => String(value).includes(key))
      const message = `there is no key '${String(sent).replace('Bearer ', '')}'`
      response
        .writeHead(401, { 'content-type': 'application/json' })
        .end(JSON.stringify({ type: 'error', error: { type: 'auth', message } }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const left = await leftOf(made(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`))
    server.close().closeAllConnections()
    expect(left).toMatch(/there is no key '\[(?:authorization|x-api-key|x-key)\]'/i)
    expect(left).not.toContain(key)
  })
})

test('a model whose settings can not be looked at fails with its own words', async () => {
  const shy = { ...saying(() => []), doGenerate: () => Promise.reject(new Error('no such model')) }
  const settings = [
    { get: () => raise('not yours') },
    { value: { headers: () => raise('no key is set') } },
    { value: { headers: async () => raise('no token') } },
    { value: null },
  ]
  for (const config of settings) expect(await leftOf(Object.defineProperty({ ...shy }, 'config', config))).toContain('no such model')
})

test('of secrets that begin alike nothing is left', () => {
  const secrets = secretsOf({ A_KEY: 'abcdefgh', B_TOKEN: 'abcdefgh-and-more', C_SECRET: 'short', HOME: '/home/somebody' })
  expect(withoutSecrets('abcdefgh, abcdefgh-and-more, short, /home/somebody', secrets)).toBe('[A_KEY], [B_TOKEN], short, /home/somebody')
})

test('secrets are found in JSON and in addresses too', () => {
  const secrets = secretsOf({ A_KEY: 'ab"cd\\ef/gh+ij' })
  const said = `${JSON.stringify({ key: 'ab"cd\\ef/gh+ij' })} ?key=${encodeURIComponent('ab"cd\\ef/gh+ij')}`
  expect(withoutSecrets(said, secrets)).toBe('{"key":"[A_KEY]"} ?key=[A_KEY]')
})

test.each(['anthropic/claude', 'openai/gpt', 'compatible'])('%s: neither key nor question follow a redirect', async (name) => {
  const seen: unknown[] = []
  const elsewhere = createServer((request, response) => {
    seen.push(request.headers)
    response.end('{}')
  })
  const here = createServer((request, response) => {
    request.resume()
    response.writeHead(307, { location: `http://localhost:${portOf(elsewhere)}/` }).end()
  })
  const portOf = (server: typeof here) => (server.address() as AddressInfo).port
  for (const server of [elsewhere, here]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${portOf(here)}/v1`
  for (const each of ['ANTHROPIC', 'OPENAI']) {
    vi.stubEnv(`${each}_API_KEY`, key)
    vi.stubEnv(`${each}_BASE_URL`, url)
  }
  const left = await leftOf(name === 'compatible' ? `${url}#tiny` : name)
  for (const server of [elsewhere, here]) server.close().closeAllConnections()
  expect(left).toContain('the server sends the call on to http://localhost')
  expect(seen).toEqual([])
})
