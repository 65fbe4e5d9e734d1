import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { Run, RunResult, Topology, Tutti } from 'tutti'
import { topology } from 'tutti'
import { describe, expect, test } from 'vitest'
import { opened, timed } from '../engine/opened.js'
import { type Answer, type Held, OpenAiServer, type Received } from './openai-server.js'

const secret = 'ALPHA-BETA-DELTA'

/** The agents of the secret word, played by the server: who is asked stands in the system message. */
function play({ body }: Received): Answer {
  const agent = agentOf(body)
  const asked = body.messages.findLast(({ role }) => role === 'user')
  const results = body.messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
  const last = results.at(-1) ?? ''
  const invoke = (...invocations: { agent_name: string; request: string }[]) => ({
    calls: [{ name: 'invoke_agent', input: { invocations } }],
  })
  switch (agent) {
    case 'Orchestrator':
      if (results.length === 0)
        return invoke(
          { agent_name: 'AgentA', request: 'first part' },
          { agent_name: 'AgentB', request: 'second part' },
          { agent_name: 'AgentC', request: 'third part' },
        )
      return { calls: [{ name: 'finish', input: { output: [...last.matchAll(/"value":"([A-Z]+)"/g)].map(([, part]) => part).join('-') } }] }
    case 'AgentA':
      return 'ALPHA'
    case 'AgentB':
      return 'BETA'
    case 'AgentC':
      // It does not know, and hands over to who does.
      return invoke({ agent_name: 'AgentD', request: `you know: ${JSON.stringify(asked?.content)}` })
    default:
      return 'DELTA'
  }
}

const agentOf = ({ messages }: Received['body']): string => /You are (\w+)\./.exec(String(messages[0]?.content))?.[1] ?? ''

function teamAt(server: OpenAiServer, more: object = {}): Topology<unknown, unknown> {
  const model = createOpenAICompatible({ name: 'local', baseURL: server.url, includeUsage: true })('tiny')
  const agent = { model, ...more }
  const flows = ['Start -> Orchestrator -> End', 'Orchestrator <-> AgentA | AgentB', 'Orchestrator -> AgentC -> AgentD -> Orchestrator']
  const agents = { Orchestrator: agent, AgentA: agent, AgentB: agent, AgentC: agent, AgentD: agent }
  return topology({ name: 'secret', flows, agents } as never) as never
}

/** With somebody who listens, models are streamed. */
async function listening(run: Run): Promise<string> {
  let text = ''
  for await (const event of run.events({ deltas: true })) if (event.type === 'text.delta') text += `${event.agent}:${event.text} `
  return text
}

const solved = { status: 'succeeded', output: secret }
const usual = 6

async function solve(tutti: Tutti, server: OpenAiServer, streamed: boolean, more: object = {}): Promise<RunResult> {
  const run = await tutti.start(teamAt(server, more), { input: 'find the secret word' })
  const heard = streamed ? listening(run) : Promise.resolve('')
  const result = await run.result()
  if (streamed) expect(await heard).toMatch(/AgentA:ALPHA|AgentA:AL/)
  return result
}

const orders = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
] as const

describe.each([
  ['streamed', true],
  ['not streamed', false],
])('the secret word over HTTP, %s', (_, streamed) => {
  test('is found, and nobody is asked twice', async () => {
    await using server = await OpenAiServer.start(play)
    await using tutti = await opened()
    const result = await solve(tutti, server, streamed)
    expect(result).toMatchObject(solved)
    expect(server.requests.map(({ body }) => agentOf(body)).sort()).toEqual([
      'AgentA',
      'AgentB',
      'AgentC',
      'AgentD',
      'Orchestrator',
      'Orchestrator',
    ])
    expect(server.requests.every(({ body }) => (body.stream === true) === streamed)).toBe(true)
    expect(result.report.measured.usage).toEqual({ inputTokens: 60, outputTokens: 30 })
    expect(result.report.measured.usageBy).toMatchObject({
      agents: { Orchestrator: { inputTokens: 20 } },
      branches: { 'r.2': { inputTokens: 20 } },
    })
  })

  test('is found in every order of the answers', async () => {
    await using server = await OpenAiServer.start(play)
    server.hold()
    await using tutti = await opened()
    const release = async (count: number, which: (held: readonly Held[]) => Held | undefined): Promise<void> =>
      which(await server.held(count))?.release()
    const outcomes = new Set<string>()
    for (const order of orders) {
      const solving = solve(tutti, server, streamed)
      await release(1, ([first]) => first)
      const three = [...(await server.held(3))].sort((a, b) => (agentOf(a.body) < agentOf(b.body) ? -1 : 1))
      for (const index of order) three[index]?.release()
      // AgentD is asked once AgentC has handed over, and at the end the Orchestrator.
      await release(1, ([next]) => next)
      await release(1, ([next]) => next)
      const { report, ...result } = await solving
      expect(result).toMatchObject(solved)
      outcomes.add(JSON.stringify([result, { ...report, runId: '', measured: null }]))
    }
    expect(outcomes.size).toBe(1)
    expect(server.requests).toHaveLength(usual * orders.length)
  })

  test.each<[string, Answer, number]>([
    ['429 with retry-after', { status: 429, retryAfterMs: 1_500 }, 1_500],
    ['500', { status: 500 }, 250],
    ['a connection that is cut at once', { cut: 'before' }, 250],
    ['a connection that is cut in the middle', { cut: 'middle', text: 'BE but not to the end' }, 250],
    ['an answer that breaks off though its connection does not', { raw: '{"choices": [{"mess' }, 250],
    ['the word of a server in between', { raw: '<html>Bad gateway</html>' }, 250],
    ['an error that looks like an answer', { raw: '{"error": {"message": "Provider returned error", "code": 502}}' }, 250],
  ])('is found in spite of %s', async (__, trouble, waitMs) => {
    await using game = await timed()
    const asked: number[] = []
    await using server = await OpenAiServer.start((request) => {
      if (agentOf(request.body) !== 'AgentB') return play(request)
      return asked.push(game.clock.now()) === 1 ? trouble : play(request)
    })
    const solving = solve(game.tutti, server, streamed)
    const over = solving.then(() => true)
    while (!(await Promise.race([over, new Promise((resolve) => setImmediate(resolve))]))) await game.clock.advance(50)
    expect(await solving).toMatchObject(solved)
    expect(server.requests).toHaveLength(usual + 1)
    // It waited for as long as it was told to, or for its backoff, of which chance takes up to a half.
    const [first = 0, again = 0] = asked
    expect(again - first).toBeGreaterThanOrEqual(waitMs)
  })

  test('is found in spite of a server that hangs, once the attempt has timed out', async () => {
    let hung = false
    await using server = await OpenAiServer.start((request) => {
      if (agentOf(request.body) !== 'AgentB' || hung) return play(request)
      hung = true
      return { hang: 'before' }
    })
    await using game = await timed()
    const solving = solve(game.tutti, server, streamed, { timeoutMs: 30_000, retry: { attempts: 2 } })
    const over = solving.then(() => true)
    await server.done(4)
    await game.clock.advance(30_000)
    const stuck = server.requests.find(({ body }) => agentOf(body) === 'AgentB')
    await stuck?.aborted
    while (!(await Promise.race([over, new Promise((resolve) => setImmediate(resolve))]))) await game.clock.advance(100)
    expect(await solving).toMatchObject(solved)
    expect(server.requests).toHaveLength(usual + 1)
  })
})

test('an error that does not pass is not tried again, and fails the branch with what the server said', async () => {
  await using server = await OpenAiServer.start((request) =>
    agentOf(request.body) === 'AgentA' ? { status: 401, message: 'no such key' } : play(request),
  )
  await using tutti = await opened()
  const result = await solve(tutti, server, false)
  expect(result).toMatchObject({
    status: 'failed',
    error: {
      code: 'JOIN_FAILED',
      cause: { code: 'MODEL_FAILED', message: expect.stringMatching(/no such key/), data: { status: 401, attempts: 1 } },
    },
  })
  expect(server.requests.filter(({ body }) => agentOf(body) === 'AgentA')).toHaveLength(1)
})

test('an error that passes and does not is given up after three attempts', async () => {
  await using server = await OpenAiServer.start(() => ({ status: 503, retryAfterMs: 1 }))
  await using tutti = await opened()
  const result = await solve(tutti, server, false)
  expect(result).toMatchObject({ status: 'failed', error: { code: 'MODEL_FAILED', data: { status: 503, attempts: 3, retryAfterMs: 1 } } })
  expect(server.requests).toHaveLength(3)
  // How often and how long depends on timing: that is no part of the report.
  expect(result.report.error).toMatchObject({ code: 'MODEL_FAILED', data: { status: 503 } })
  expect(JSON.stringify({ ...result.report, measured: null })).not.toMatch(/attempts|retryAfterMs/)
})
