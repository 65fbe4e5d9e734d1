import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mcp, tool } from 'tutti'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { checked } from '../../src/define/check-schema.js'
import { jsonSchemaOf } from '../../src/define/json-schema.js'
import { type Toolbox, toolbox } from '../../src/define/toolbox.js'
import { mcpResult } from '../../src/models/mcp-result.js'
import { Toolboxes } from '../../src/models/toolboxes.js'

const script = (name: string) => createRequire(import.meta.url).resolve(`@modelcontextprotocol/server-${name}/dist/index.js`)
const everything = { command: process.execPath, args: [script('everything'), 'stdio'] }

const undone: (() => unknown)[] = []
afterEach(async () => {
  for (const undo of undone.splice(0).reverse()) await undo()
})

/** The tools of a toolbox as an agent has them, under the name `t`. */
async function opened(box: Toolbox) {
  const boxes = new Toolboxes()
  undone.push(() => boxes.close())
  const tools = await boxes.toolsOf({ t: box })
  const call = async (name: string, input: unknown, signal: AbortSignal = new AbortController().signal) =>
    tools.get(name)?.run(input, { signal, idempotencyKey: 'k', attempt: 1, use: () => undefined as never, emit: () => {} })
  return { boxes, tools, call }
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'tutti-mcp-'))
  undone.push(() => rmSync(made, { recursive: true, force: true }))
  return made
}

describe('the tools of an MCP server over stdio', () => {
  let one: Awaited<ReturnType<typeof opened>>
  beforeAll(async () => {
    process.env['TUTTI_TEST_SECRET'] = 'secret'
    one = await opened(mcp({ ...everything, env: { GIVEN: 'this' } }))
    undone.length = 0
  })
  afterAll(async () => {
    delete process.env['TUTTI_TEST_SECRET']
    await one.boxes.close()
  })

  test('are listed under the name of the toolbox, with the schema of the server', async () => {
    expect([...one.tools.keys()]).toEqual(expect.arrayContaining(['t_echo', 't_get-sum', 't_get-tiny-image']))
    const { input, description, idempotent } = one.tools.get('t_get-sum') ?? {}
    expect(description).toBe('Returns the sum of two numbers')
    expect(idempotent).toBe(true)
    expect(one.tools.get('t_toggle-simulated-logging')?.idempotent).toBe(false)
    expect(jsonSchemaOf(input)).toMatchObject({ type: 'object', required: ['a', 'b'], properties: { a: { type: 'number' } } })
    expect(await checked(input, { a: 1, b: 2 }, 'x')).toMatchObject({ value: { a: 1, b: 2 } })
    expect(await checked(input, { a: 'one', b: 2 }, 'x')).toMatchObject({ problem: expect.stringMatching(/not valid.*number/) as string })
  })

  test('give text, structured values, and of pictures only what they are; their errors are thrown', async () => {
    expect(await one.call('t_echo', { message: 'hi' })).toBe('Echo: hi')
    expect(await one.call('t_get-structured-content', { location: 'Chicago' })).toMatchObject({ conditions: expect.any(String) as string })
    const picture = { type: 'image', mediaType: 'image/png', bytes: expect.any(Number) as number }
    expect(await one.call('t_get-tiny-image', {})).toEqual([expect.any(String), picture, expect.any(String)])
    await expect(one.call('t_get-sum', { a: 'x' })).rejects.toThrow(/Invalid arguments for tool get-sum/)
  })

  test('see nothing of the environment that is not given to them', async () => {
    const seen = String(await one.call('t_get-env', {}))
    expect(seen).toContain('"GIVEN": "this"')
    expect(seen).not.toContain('secret')
  })

  test('are stopped when the turn is', async () => {
    const abort = new AbortController()
    const running = one.call('t_trigger-long-running-operation', { duration: 600, steps: 1 }, abort.signal)
    abort.abort()
    await expect(running).rejects.toThrow(/abort/i)
  })

  test('read real files, and only where the server allows it', async () => {
    const allowed = folder()
    writeFileSync(join(allowed, 'word.txt'), 'tutti')
    const server = { command: process.execPath, args: [script('filesystem'), allowed] }
    const { call, tools } = await opened(mcp(server, { only: ['read_text_file', 'write_file'], needsApproval: ['write_file'] }))
    expect([...tools].map(([name, { needsApproval, idempotent }]) => [name, needsApproval, idempotent])).toEqual([
      ['t_read_text_file', false, true],
      ['t_write_file', true, true],
    ])
    expect(await call('t_read_text_file', { path: join(allowed, 'word.txt') })).toMatchObject({ content: 'tutti' })
    await expect(call('t_read_text_file', { path: '/etc/passwd' })).rejects.toThrow(/Access denied/)
  })

  test('tell of a picture only what it is where a structured value has it too', async () => {
    const allowed = folder()
    writeFileSync(join(allowed, 'dot.png'), Buffer.alloc(3_000, 7))
    const { call } = await opened(mcp({ command: process.execPath, args: [script('filesystem'), allowed] }, { only: ['read_media_file'] }))
    const told = JSON.stringify(await call('t_read_media_file', { path: join(allowed, 'dot.png') }))
    expect(told).toContain('{"type":"image","mediaType":"image/png","bytes":3000}')
    expect(told.length).toBeLessThan(300)
  })

  test('start one server, however many need it at once; another if it has died; and none after the engine was closed', async () => {
    const file = join(folder(), 'pids')
    const note = `require('fs').appendFileSync(${JSON.stringify(file)}, process.pid + '\\n')`
    const program = `${note}; process.argv[2] = 'stdio'; import(${JSON.stringify(script('everything'))})`
    const box = mcp({ command: process.execPath, args: ['-e', program, 'x'] }, { only: ['echo'] })
    const { boxes, call } = await opened(box)
    await Promise.all([1, 2, 3].map(() => boxes.toolsOf({ a: box, b: box })))
    const pids = () => readFileSync(file, 'utf8').trim().split('\n').map(Number)
    expect(pids()).toHaveLength(1)
    process.kill(pids()[0] ?? 0, 'SIGKILL')
    await expect
      .poll(async () =>
        call('t_echo', { message: 'x' })?.then(
          () => pids().length,
          () => 0,
        ),
      )
      .toBe(2)
    await boxes.close()
    await expect(call('t_echo', { message: 'x' })).rejects.toMatchObject({ code: 'CLOSED' })
    expect(pids()).toHaveLength(2)
  })
})

describe('what can go wrong with an MCP server is said:', () => {
  test.each<[string, Toolbox, RegExp]>([
    ['no such program', mcp({ command: 'tutti-no-such-program' }), /^the MCP server tutti-no-such-program can't be used: .*ENOENT/],
    ['a program that is none', mcp({ command: process.execPath, args: ['-e', ''] }), /can't be used: .*closed/i],
    ['no such tool', mcp(everything, { only: ['fly'] }), /can't be used: it has no tool fly; it has echo, /],
    [
      'nobody there',
      mcp({ url: 'http://127.0.0.1:1/mcp?key=secret', headers: { authorization: 'secret' } }),
      /^the MCP server http:\/\/127\.0\.0\.1:1\/mcp can't be used: /,
    ],
  ])('%s', async (_, box, message) => {
    const boxes = new Toolboxes()
    undone.push(() => boxes.close())
    const error: unknown = await boxes.toolsOf({ t: box }).catch((thrown: unknown) => thrown)
    expect((error as Error).message).toMatch(message)
    expect(String(error)).not.toContain('secret')
  })

  test('two tools of one name, and names that no provider takes', async () => {
    const own = tool({ description: 'x', input: z.object({}), run: () => 1 })
    const box = (name: string) =>
      toolbox({ description: 'a box', open: () => ({ list: async () => ({ [name]: own }), close: async () => {} }) })
    const boxes = new Toolboxes()
    await expect(boxes.toolsOf({ t_echo: own, t: box('echo') })).rejects.toThrow(
      "two tools are called t_echo: give the toolbox 't' another name",
    )
    await expect(boxes.toolsOf({ ask: box('user') })).rejects.toThrow('two tools are called ask_user')
    await expect(boxes.toolsOf({ t: box('x'.repeat(70)) })).rejects.toThrow('a name has at most 64 letters')
    await expect(boxes.toolsOf({ t: box('a<b>') })).rejects.toThrow("a box has a tool 't_a<b>'")
    expect([...(await boxes.toolsOf({ t: box('files.read/all') })).keys()]).toEqual(['t_files_read_all'])
  })

  test.each([
    [{}, {}],
    [null, {}],
    [{ command: '' }, {}],
    [{ command: 'x', url: 'http://x' }, {}],
    [{ url: 'ftp://example.com' }, {}],
    [{ command: 'x' }, { onyl: ['a'] }],
    [{ command: 'x' }, { timeoutMs: 0 }],
  ])('what is no server, or no option of one: %j %j', (server, options) => {
    expect(() => mcp(server as never, options as never)).toThrow(TypeError)
  })
})

test('the tools of an MCP server over streamable HTTP work, and work again after the server was started anew', async () => {
  const port = await freePort()
  const start = async () => {
    const child = spawn(process.execPath, [script('everything'), 'streamableHttp'], { env: { ...process.env, PORT: String(port) } })
    undone.push(() => child.kill('SIGKILL'))
    await new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (text) => (/listening/i.test(String(text)) ? resolve() : undefined))
    })
    return child
  }
  const first = await start()
  const { call } = await opened(mcp({ url: `http://127.0.0.1:${port}/mcp` }))
  expect(await call('t_echo', { message: 'over http' })).toBe('Echo: over http')
  const dead = new Promise((resolve) => first.once('exit', resolve))
  first.kill('SIGKILL')
  await dead
  await expect(call('t_echo', { message: 'x' })).rejects.toThrow()
  await start()
  expect(await call('t_echo', { message: 'again' })).toBe('Echo: again')
})

describe('a result', () => {
  const text = (value: string) => ({ content: [{ type: 'text', text: value }] })
  test('is bounded, and says that it was cut', () => {
    const long = String(mcpResult(text('x'.repeat(200_000))))
    expect(long.length).toBeLessThan(101_000)
    expect(long).toMatch(/\[cut: 100000 of 200000 characters\]$/)
    expect(String(mcpResult({ structuredContent: { list: Array.from({ length: 50_000 }, (_, n) => n) } }))).toMatch(/\[cut: /)
    expect(() => mcpResult({ ...text('y'.repeat(9_000)), isError: true })).toThrow(/^y{2000}… \[cut/)
  })

  test('that is no plain JSON is an error', () => {
    expect(() => mcpResult({ structuredContent: JSON.parse('{"a":{"__proto__":1}}') as unknown })).toThrow(/__proto__/)
  })

  test('tells of a file only what it is, also where a structured value repeats it', () => {
    const blob = Buffer.alloc(300, 7).toString('base64')
    const content = [{ type: 'resource', resource: { uri: 'x:2', blob } }]
    const told = mcpResult({ content, structuredContent: { title: 'a scan', pages: [{ number: 1, blob }] } })
    expect(told).toEqual({ title: 'a scan', pages: [{ number: 1, blob: { type: 'file', uri: 'x:2', bytes: 300 } }] })
  })

  test('of several kinds is a list', () => {
    expect(
      mcpResult({
        content: [
          { type: 'text', text: 'a' },
          { type: 'resource', resource: { uri: 'x:1', text: 'b' } },
          { type: 'resource', resource: { uri: 'x:2', blob: 'AAAA' } },
          { type: 'resource_link', uri: 'x:3', name: 'c' },
        ],
      }),
    ).toEqual([
      'a',
      { type: 'text', uri: 'x:1', text: 'b' },
      { type: 'file', uri: 'x:2', bytes: 3 },
      { type: 'link', uri: 'x:3', name: 'c' },
    ])
  })
})

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number }
      probe.close(() => resolve(port))
    })
  })
}
