import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type Answer, OpenAiServer, type Received } from './openai-server.js'

const script = fileURLToPath(new URL('children/agent.js', import.meta.url))
const patience = { timeout: 120_000 }

/** A store and what was done beside it, for one test. */
class Trip implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'tutti-models-'))

  effects(): string[] {
    const log = join(this.#folder, 'log')
    return existsSync(log)
      ? readFileSync(log, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
      : []
  }

  /** Starts the run, or goes on with it, in a process of its own. */
  go(server: OpenAiServer, hangs = ''): { kill: () => Promise<void>; output: Promise<string> } {
    const child = spawn(process.execPath, [script, join(this.#folder, 'x.db'), join(this.#folder, 'log'), server.url, hangs])
    let said = ''
    let wrong = ''
    child.stdout.on('data', (text: Buffer) => (said += text.toString()))
    child.stderr.on('data', (text: Buffer) => (wrong += text.toString()))
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
    const output = ended.then(() => (said === '' ? `ended: ${wrong}` : said.trim()))
    return {
      output,
      kill: async () => {
        child.kill('SIGKILL')
        await ended
      },
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

const book = (...items: string[]): Answer => ({ calls: items.map((item) => ({ name: 'book', input: { item } })) })

/** Books a flight and a room, then a car, then ends with what came of it. */
function agent({ body }: Received): Answer {
  const results = body.messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
  if (results.length === 0) return book('flight', 'room')
  return results.length === 2 ? book('car') : { calls: [{ name: 'finish', input: { output: results.join(', ') } }] }
}

test.each([1, 2, 3])(
  'G2 kill -9 while the model is asked for the %i. time: no tool is executed again, and the transcript is one that providers take',
  patience,
  async (point) => {
    using trip = new Trip()
    await using server = await OpenAiServer.start(agent)
    server.hold()
    const first = trip.go(server)
    for (let asked = 1; asked < point; asked++) (await server.held(1))[0]?.release()
    // It is asked now, with what its tools gave; the answer never comes.
    const [lost] = await server.held(1)
    const before = trip.effects()
    expect(before).toHaveLength([0, 0, 2, 3][point] ?? -1)
    await first.kill()
    lost?.release()
    const second = trip.go(server)
    for (let asked = point; asked <= 3; asked++) (await server.held(1))[0]?.release()
    expect(await second.output).toBe('"\\"flight is booked\\", \\"room is booked\\", \\"car is booked\\""')
    expect(trip.effects().sort()).toEqual(['booked car', 'booked flight', 'booked room'])
    // What was recorded was not asked for again: only the call that was lost.
    expect(server.requests).toHaveLength(4)
  },
)

test('kill -9 inside a tool that must not be repeated: it is not, and the model is told that nobody knows', patience, async () => {
  using trip = new Trip()
  await using server = await OpenAiServer.start(({ body }) => {
    const result = body.messages.findLast(({ role }) => role === 'tool')
    if (result === undefined) return { calls: [{ name: 'send', input: { item: 'money' } }] }
    return { calls: [{ name: 'finish', input: { output: String(result.content) } }] }
  })
  const first = trip.go(server, 'hangs')
  while (trip.effects().length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  await first.kill()
  const second = trip.go(server)
  expect(await second.output).toMatch(/must not be repeated.*nobody knows whether it completed/)
  expect(trip.effects()).toEqual(['sent money'])
  expect(server.requests).toHaveLength(2)
})
