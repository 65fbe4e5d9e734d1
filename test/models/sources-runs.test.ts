import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agent, mcp, type OpenOptions, open, tool, topology } from 'tutti'
import { record, replay, script } from 'tutti/testing'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { OpenAiServer, type Received } from './openai-server.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-sources-'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

const team = topology({
  name: 'letters',
  flows: ['Start -> Hub -> End', 'Hub <-> A | B | C'],
  agents: {
    Hub: { instructions: 'Collect the letters.' },
    A: { instructions: 'Say T.' },
    B: { instructions: 'Say U.' },
    C: { instructions: 'Say !.' },
  },
})

const letters: Readonly<Record<string, string>> = { A: 'T', B: 'U', C: '!' }
/** Plays all agents: by the name in what the model is told before all else. */
function play({ body }: Received) {
  const who = /^You are (\w+)\./.exec(String(body.messages[0]?.content))?.[1] ?? ''
  if (who !== 'Hub') return letters[who] ?? '?'
  const result = body.messages.find(({ role }) => role === 'tool')
  if (result === undefined)
    return {
      calls: [
        { name: 'invoke_agent', input: { invocations: ['A', 'B', 'C'].map((name) => ({ agent_name: name, request: 'your letter' })) } },
      ],
    }
  const { results } = JSON.parse(String(result.content)) as { results: { value: string }[] }
  return { calls: [{ name: 'finish', input: { output: results.map(({ value }) => value).join('') } }] }
}

async function result(options: OpenOptions, input: unknown = 'the word') {
  await using tutti = await open({ store: 'memory:', invariants: true, ...options })
  const run = await tutti.start(team, { input })
  return await run.result()
}

describe('a run that was recorded', () => {
  test('is played again with no server: the same output, the same report, whatever order the answers had', async () => {
    const file = join(folder, 'tape.jsonl')
    const server = await OpenAiServer.start(play)
    vi.stubEnv('TUTTI_MODEL', `${server.url}#tiny`)
    await using recording = record(file)
    server.hold()
    const running = result({ models: recording })
    const hub = await server.held(1)
    hub[0]?.release()
    for (const held of (await server.held(3)).reverse()) held.release()
    for (const held of await server.held(1)) held.release()
    const first = await running
    await recording.close()
    await server[Symbol.asyncDispose]()
    expect(first).toMatchObject({ status: 'succeeded', output: 'TU!' })
    expect(first.report.measured.usage).toEqual({ inputTokens: 50, outputTokens: 25 })
    expect(first.report.measured.usageBy).toMatchObject({
      agents: { Hub: { calls: 2, inputTokens: 20, outputTokens: 10 }, A: { calls: 1, inputTokens: 10, outputTokens: 5 } },
      branches: { r: { calls: 2 }, 'r.0': { calls: 1 }, 'r.1': { calls: 1 }, 'r.2': { calls: 1 } },
    })

    const again = await result({ models: replay(file) })
    expect(again).toMatchObject({ status: 'succeeded', output: 'TU!' })
    expect(again.report.interactions).toEqual(first.report.interactions)
    expect(again.report.measured.usage).toEqual(first.report.measured.usage)

    const other = await result({ models: replay(file) }, 'the world')
    expect(other.status === 'failed' && other.error.message).toMatch(
      /no such call of Hub, branch r, turn 1, call 0: another was recorded there; it differs at prompt\[1\].*"the word", now "the world"/,
    )
  })
})

test('what a model says is told as it comes to whoever listens, and recorded and played alike', async () => {
  const file = join(folder, 'tape.jsonl')
  await using server = await OpenAiServer.start(() => 'grüße 👋 from far away')
  vi.stubEnv('TUTTI_MODEL', `${server.url}#tiny`)
  const heard = async (models: OpenOptions) => {
    let listens = () => {}
    const listening = new Promise<void>((resolve) => (listens = resolve))
    const Gate = agent({ name: 'Gate', act: async (turn) => listening.then(() => turn.invoke('A')) })
    const two = topology({ name: 'two', flows: ['Start -> Gate -> A -> End'], agents: [Gate, agent({ name: 'A' })] })
    await using tutti = await open({ store: 'memory:', ...models })
    const run = await tutti.start(two)
    const texts: string[] = []
    for await (const event of run.events({ deltas: true })) {
      listens()
      if (event.type === 'text.delta') texts.push(event.text)
    }
    return { texts, output: await run.output() }
  }
  const recording = record(file)
  const live = await heard({ models: recording })
  await recording.close()
  expect(server.requests.map(({ body }) => body.stream)).toEqual([true])
  const again = await heard({ models: replay(file) })
  for (const { texts, output } of [live, again]) {
    expect(output).toBe('grüße 👋 from far away')
    expect(texts.join('')).toBe(output)
    expect(texts.length).toBeGreaterThan(2)
  }
})

describe('an agent with tools of an MCP server', () => {
  const files = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-filesystem/dist/index.js')

  test('calls them in a run; what goes wrong is a result that the model reads', async () => {
    writeFileSync(join(folder, 'word.txt'), 'tutti')
    const server = mcp({ command: process.execPath, args: [files, folder] }, { only: ['read_text_file'] })
    const reader = topology({ name: 'reader', flows: ['Start -> Reader -> End'], agents: { Reader: { tools: { files: server } } } })
    await using model = await OpenAiServer.start(({ body }) => {
      const read = body.messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
      const paths = [join(folder, 'word.txt'), '/etc/passwd', 7]
      if (read.length < paths.length) return { calls: [{ name: 'files_read_text_file', input: { path: paths[read.length] } }] }
      return { calls: [{ name: 'finish', input: { output: read } }] }
    })
    vi.stubEnv('TUTTI_MODEL', `${model.url}#tiny`)
    await using tutti = await open({ store: 'memory:', invariants: true })
    expect(model.requests).toEqual([])
    const output = await tutti.execute(reader, { input: 'read' })
    expect(output).toEqual([
      expect.stringContaining('tutti'),
      expect.stringContaining('Access denied'),
      expect.stringMatching(/path.*string|not valid/),
    ])
    expect(model.requests[0]?.body.tools?.map((tool) => tool.function.name)).toEqual(['finish', 'files_read_text_file'])
  })

  test('fails its turn if the server can not be used, and says which', async () => {
    const lost = topology({
      name: 'lost',
      flows: ['Start -> A -> End'],
      agents: { A: { tools: { x: mcp({ command: 'tutti-no-such-program' }) } } },
    })
    await using tutti = await open({ store: 'memory:', models: script({ A: ['never'] }) })
    const run = await tutti.start(lost)
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { message: expect.stringMatching(/^the MCP server tutti-no-such-program can't be used/) as string },
    })
  })
})

describe('what a run cost', () => {
  const one = topology({ name: 'one', flows: ['Start -> A -> End'], agents: { A: {} } })
  const usage = async (options: OpenOptions, answer: object) => {
    await using server = await OpenAiServer.start(() => ({ text: 'x', ...answer }))
    vi.stubEnv('TUTTI_MODEL', `${server.url}#tiny`)
    await using tutti = await open({ store: 'memory:', ...options })
    const run = await tutti.start(one)
    return (await run.result()).report.measured.usage
  }

  test('is there if the provider says it or the user has given the price, and else is not', async () => {
    const tokens = { inputTokens: 1_000, outputTokens: 100 }
    const counted = { usage: { input: 1_000, output: 100 } }
    expect(await usage({}, counted)).toEqual(tokens)
    expect(await usage({}, { usage: { ...counted.usage, cost: 0.25 } })).toEqual({ ...tokens, costUsd: 0.25 })
    const priced = await usage({ prices: { 'compatible/tiny': { input: 2, output: 10 } } }, counted)
    expect(priced).toEqual({ ...tokens, costUsd: expect.closeTo(0.003, 10) as number })
  })

  test('is not there if only a part of it is known', async () => {
    const two = topology({ name: 'two', flows: ['Start -> A -> B -> End'], agents: { A: {}, B: {} } })
    const hand = { calls: [{ name: 'invoke_agent', input: { invocations: [{ agent_name: 'B', request: 'x' }] } }] }
    await using server = await OpenAiServer.start(({ n }) => (n === 0 ? { ...hand, usage: { input: 10, output: 5, cost: 0.25 } } : 'x'))
    vi.stubEnv('TUTTI_MODEL', `${server.url}#tiny`)
    await using tutti = await open({ store: 'memory:' })
    const { usage, usageBy } = (await (await tutti.start(two)).result()).report.measured
    expect(usage).toEqual({ inputTokens: 20, outputTokens: 10 })
    expect(usageBy?.agents).toMatchObject({ A: { costUsd: 0.25 }, B: { calls: 1 } })
    expect(usageBy?.agents['B']).not.toHaveProperty('costUsd')
  })
})

test.each([
  ['gives none', () => null as never, 'MODEL_UNAVAILABLE'],
  ['throws', () => Promise.reject(new Error('no')), undefined],
])('a factory that %s fails its turn, also where a limit must know the price first', async (_, models, code) => {
  const one = topology({ name: 'one', flows: ['Start -> A -> End'], agents: { A: {} } })
  await using tutti = await open({ store: 'memory:', models })
  for (const limits of [{}, { costUsd: 1 }]) {
    const result = await (await tutti.start(one, { limits })).result()
    expect(result).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED', retryable: false } })
    if (code !== undefined) expect(result).toMatchObject({ error: { data: { code } } })
  }
})

test('an agent whose model can not be had fails with what to do, and no key is in the journal', async () => {
  vi.stubEnv('OPENAI_API_KEY', '')
  vi.stubEnv('ANTHROPIC_API_KEY', 'sk-very-secret')
  const one = topology({ name: 'one', flows: ['Start -> A -> End'], agents: { A: { model: 'openai/gpt-5' } } })
  const store = join(folder, 'runs.db')
  await using tutti = await open({ store })
  const run = await tutti.start(one)
  expect(await run.result()).toMatchObject({
    status: 'failed',
    error: {
      code: 'MODEL_FAILED',
      retryable: false,
      data: { code: 'MODEL_UNAVAILABLE', hint: expect.stringContaining('set OPENAI_API_KEY') as string },
      message: expect.stringContaining('OPENAI_API_KEY is not set') as string,
    },
  })
  expect(readFileSync(store).includes('sk-very-secret')).toBe(false)
})

test.each([false, true])(
  'a server that wants to see its thoughts again sees them, with the call they led to (streamed: %s)',
  async (deltas) => {
    const said = { thought: 'the user wants a note', calls: [{ name: 'note', input: {} }] }
    await using server = await OpenAiServer.start(({ n }) => (n === 0 ? said : 'done'))
    const note = tool({ description: 'Takes a note.', input: z.object({}), run: () => 'noted' })
    const solo = topology({ name: 'solo', flows: ['Start -> A -> End'], agents: { A: { model: `${server.url}#tiny`, tools: { note } } } })
    await using tutti = await open({ store: 'memory:' })
    const run = await tutti.start(solo)
    if (deltas) for await (const _ of run.events({ deltas }));
    expect(await run.output()).toBe('done')
    const assistant = server.requests[1]?.body.messages.find(({ role }) => role === 'assistant')
    expect(assistant).toMatchObject({ reasoning_content: said.thought, tool_calls: [{ function: { name: 'note' } }] })
  },
)

describe('an answer of a server that can not be read', () => {
  const solo = (server: OpenAiServer) =>
    topology({
      name: 'solo',
      flows: ['Start -> A -> End'],
      agents: { A: { model: `${server.url}#tiny`, retry: { attempts: 2, backoffMs: 1 } } },
    })

  test.each([
    [200, false],
    [500, false],
    [200, true],
  ])('because it has no end (%i, streamed: %s) is not read until the memory is full', async (endless, deltas) => {
    await using server = await OpenAiServer.start(() => ({ endless }))
    await using tutti = await open({ store: 'memory:' })
    const run = await tutti.start(solo(server))
    if (deltas) for await (const _ of run.events({ deltas }));
    const message = expect.stringMatching(/the answer has more than 60000000 bytes$/) as string
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED', message } })
    await Promise.all(server.requests.map(({ aborted }) => aborted))
  })

  test('for good because it can not be read is told in words that say what came instead', async () => {
    await using server = await OpenAiServer.start(() => ({ raw: '{"error": {"message": "out of credit"}}' }))
    await using tutti = await open({ store: 'memory:' })
    const message = expect.stringMatching(/out of credit/) as string
    expect(await (await tutti.start(solo(server))).result()).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED', message } })
    expect(server.requests).toHaveLength(2)
  })

  test.each([false, true])('because there is nothing in it is asked for again, and counts (streamed: %s)', async (deltas) => {
    const nothing = { id: 'x', object: 'chat.completion', created: 1, model: 'tiny', choices: [] }
    await using server = await OpenAiServer.start(({ n }) => (n > 0 ? 'all of it' : { raw: deltas ? '' : JSON.stringify(nothing) }))
    await using tutti = await open({ store: 'memory:' })
    const run = await tutti.start(solo(server), { limits: { tokens: 50_000 } })
    if (deltas) for await (const _ of run.events({ deltas }));
    const result = await run.result()
    expect(result).toMatchObject({ status: 'succeeded', output: 'all of it' })
    expect(result.report.measured.usage.inputTokens).toBeGreaterThan(50)
  })

  test('because it was cut counts in a limit with what it was asked; one that was refused does not', async () => {
    await using server = await OpenAiServer.start(({ n }) => (n === 0 ? { cut: 'middle', text: 'half of it' } : 'all of it'))
    await using other = await OpenAiServer.start(({ n }) => (n === 0 ? { status: 503 } : 'all of it'))
    await using tutti = await open({ store: 'memory:' })
    const [cut, refused] = await Promise.all(
      [server, other].map(async (one) => (await tutti.start(solo(one), { limits: { tokens: 50_000 } })).result()),
    )
    expect(refused?.report.measured.usage).toEqual({ inputTokens: 10, outputTokens: 5 })
    expect(cut).toMatchObject({ status: 'succeeded', output: 'all of it' })
    expect(cut?.report.measured.usage.inputTokens).toBeGreaterThan(50)
  })
})
