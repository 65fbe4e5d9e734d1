import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { mcp } from 'tutti'
import { expect, test } from 'vitest'
import type { Toolbox } from '../../src/define/toolbox.js'
import { Toolboxes } from '../../src/models/toolboxes.js'
import { deferred } from '../engine/opened.js'

/** The tools of a toolbox as an agent has them, under the name `t`. */
class Opened implements AsyncDisposable {
  readonly #boxes = new Toolboxes()
  readonly #box: Toolbox

  constructor(box: Toolbox) {
    this.#box = box
  }

  async names(): Promise<string[]> {
    return [...(await this.#boxes.toolsOf({ t: this.#box })).keys()]
  }

  async call(name: string): Promise<unknown> {
    const { signal } = new AbortController()
    const tools = await this.#boxes.toolsOf({ t: this.#box })
    return tools.get(name)?.run({}, { signal, idempotencyKey: 'k', attempt: 1, use: () => undefined as never, emit: () => {} })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#boxes.close()
  }
}

/** An MCP server over HTTP with the tools `good`, which answers when it is let, and `bad`, which answers with a 500 and what it was sent. */
async function served(letGood: Promise<void>, goodCalled: () => void): Promise<{ url: string } & AsyncDisposable> {
  const refusal = ({ authorization }: IncomingHttpHeaders, url: string) => `no ${authorization} at ${url}`
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method, params } = JSON.parse(Buffer.concat(parts).toString()) as { id?: number; method: string; params: any }
    if (id === undefined) return void response.writeHead(202).end()
    const send = (said: object) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...said }))
    const { protocolVersion } = params ?? {}
    if (method === 'initialize')
      return void send({ result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } })
    if (method === 'tools/list')
      return void send({ result: { tools: ['good', 'bad'].map((name) => ({ name, inputSchema: { type: 'object' } })) } })
    if (method !== 'tools/call') return void send({ error: { code: -32601, message: 'no such method' } })
    if (params.name === 'bad') return void response.writeHead(500).end(refusal(request.headers, request.url ?? ''))
    goodCalled()
    await letGood
    send({ result: { content: [{ type: 'text', text: 'well' }] } })
  }
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    [Symbol.asyncDispose]: async () => {
      server.close().closeAllConnections()
    },
  }
}

test('a call that a server fails ends no other call, and what it repeats of headers and address is not shown', async () => {
  const [begun, gate] = [deferred(), deferred()]
  await using server = await served(gate.promise, begun.resolve)
  const box = mcp({ url: `${server.url}?key=query-secret`, headers: { authorization: 'Bearer header-secret' } })
  await using opened = new Opened(box)
  const good = opened.call('t_good')
  await begun.promise
  const bad: unknown = await opened.call('t_bad').catch((error: unknown) => error)
  expect(String(bad)).toMatch(/no \[authorization\] at \/mcp\?key=\[key\]$/)
  // The next call makes a connection of its own; the first goes on.
  const next = opened.call('t_good')
  gate.resolve()
  expect(await Promise.all([good, next])).toEqual(['well', 'well'])
})

test('a tool that is to be approved and that the server does not have is said, not passed over', async () => {
  await using server = await served(Promise.resolve(), () => {})
  await using opened = new Opened(mcp({ url: server.url }, { needsApproval: ['god'] }))
  await expect(opened.names()).rejects.toThrow('it has no tool god; it has good, bad')
})

test('a server that says that its tools have changed is asked for them again', async () => {
  const script = fileURLToPath(new URL('children/mcp-server.js', import.meta.url))
  await using opened = new Opened(mcp({ command: process.execPath, args: [script] }))
  expect(await opened.names()).toEqual(['t_grow'])
  expect(await opened.call('t_grow')).toBe('grown')
  await expect.poll(() => opened.names()).toEqual(['t_grow', 't_tool1'])
  expect(await opened.call('t_tool1')).toBe('grown')
})

test('a message that is too long to be read ends the connection with the calls on it, and why is said', async () => {
  const script = fileURLToPath(new URL('children/mcp-server.js', import.meta.url))
  const box = (...lengths: number[]) => new Opened(mcp({ command: process.execPath, args: [script, ...lengths.map(String)] }))
  await using long = box(9_000_000)
  expect(await long.call('t_grow')).toMatch(/\[cut: 100000 of 9000000 characters\]$/)
  await using longer = box(11_000_000)
  await expect(longer.call('t_grow')).rejects.toThrow('the connection was closed: the server said more than 10 MB at once')
  expect(await longer.names()).toEqual(['t_grow'])
  await using longList = box(0, 11_000_000)
  await expect(longList.names()).rejects.toThrow("can't be used: the connection was closed: the server said more than 10 MB at once")
})

test('a server behind an address that speaks of a maximum size is heard with its own words', async () => {
  await using server = await served(Promise.resolve(), () => {})
  const box = mcp({ url: server.url, headers: { authorization: 'more than the maximum size' } })
  await using opened = new Opened(box)
  await expect(opened.call('t_bad')).rejects.toThrow(/at \/mcp$/)
})

test('an engine that is closed while a server starts does not wait for it', async () => {
  const opened = new Opened(mcp({ command: process.execPath, args: ['-e', 'process.stdin.resume()'] }))
  const names = opened.names()
  const failed = expect(names).rejects.toThrow('was closed with its engine')
  await new Promise((resolve) => setTimeout(resolve, 100))
  await opened[Symbol.asyncDispose]()
  await failed
})
