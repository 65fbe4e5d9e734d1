import type { Client, Tool as McpTool } from '@modelcontextprotocol/client'
import { type Tool, tool } from '../define/tool.js'
import type { OpenToolbox } from '../define/toolbox.js'
import { TuttiError } from '../define/tutti-error.js'
import { type McpResult, mcpResult } from './mcp-result.js'
import { headerParts, type Secret, secretsIn, secretsOf, withoutSecrets } from './secrets.js'

/** Where an MCP server is: a program that is started and spoken to over stdio, or an address that speaks streamable HTTP. */
export type McpServer =
  | { readonly command: string; readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>>; readonly cwd?: string }
  | { readonly url: string | URL; readonly headers?: Readonly<Record<string, string>> }

/** Which of its tools are used, and how. */
export interface McpOptions {
  /** Only these of its tools, by their own names. */
  readonly only?: readonly string[]
  /** Whether a person must approve each call: of all its tools, or of these. */
  readonly needsApproval?: boolean | readonly string[]
  /** How long it may take to start, and to answer one call. */
  readonly timeoutMs?: number
}

const defaultTimeoutMs = 60_000
/** What a model can choose from, and what it can read, is bounded: a server may list what it likes. */
const toolsMax = 200
const descriptionMax = 2_000
/** Of one message of a program: who says more at once is not listened to until the memory is full. */
const messageMb = 10
const tooLong = `the connection was closed: the server said more than ${messageMb} MB at once`

type Tools = Readonly<Record<string, Tool<any, unknown>>>

interface Connected {
  readonly client: Client
  readonly list: () => Promise<Tools>
  readonly call: (...call: Parameters<Client['callTool']>) => Promise<McpResult>
}

/**
 * The connection of one engine to one MCP server.
 *
 * 1. There is at most one at a time: whoever comes while it is being made waits for the same.
 * 2. One that has ended, or was never made, is made anew by the next who needs it. A call that it ended under fails.
 * 3. A call that fails ends no other: the connection is given up at once, and closed when the last call on it is over. Only a message that is
 *    too long to be read ends it at once: nobody can tell where the next one begins.
 * 4. After `close` none is made.
 */
export class McpConnection implements OpenToolbox {
  readonly #server: McpServer
  readonly #options: McpOptions
  readonly #description: string
  readonly #secrets: readonly Secret[]
  #connected: Promise<Connected> | null = null
  readonly #closing = new AbortController()

  constructor(server: McpServer, options: McpOptions, description: string) {
    this.#server = server
    this.#options = options
    this.#description = description
    this.#secrets = secretsFor(server)
  }

  async list(): Promise<Tools> {
    return (await this.#connect()).list()
  }

  async close(): Promise<void> {
    this.#closing.abort(new TuttiError('CLOSED', `${this.#description} was closed with its engine`))
    const connected = await this.#connected?.catch(() => null)
    await connected?.client.close()
  }

  #connect(): Promise<Connected> {
    this.#closing.signal.throwIfAborted()
    if (this.#connected !== null) return this.#connected
    const forget = () => {
      if (this.#connected === made) this.#connected = null
    }
    const made = this.#open(forget)
    this.#connected = made
    made.catch(forget)
    return made
  }

  async #open(forget: () => void): Promise<Connected> {
    const { Client, StdioClientTransport, StreamableHTTPClientTransport, fromJsonSchema, validator } = await loaded()
    const server = this.#server
    const http = 'url' in server
    let listed: Promise<Tools> | null = null
    const changed = () => {
      listed = null
    }
    const client = new Client(
      { name: 'tutti', version: '0.1.0' },
      {
        // The validator that makes no code of what a server sends.
        jsonSchemaValidator: validator,
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } },
        ...(http && { versionNegotiation: { mode: 'auto' } }),
      },
    )
    const transport = http
      ? new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers: { ...server.headers } } })
      : new StdioClientTransport({
          command: server.command,
          args: [...(server.args ?? [])],
          stderr: 'ignore',
          maxBufferSize: messageMb * 1_000_000,
          ...(server.env !== undefined && { env: { ...server.env } }),
          ...(server.cwd !== undefined && { cwd: server.cwd }),
        })
    // Nobody waits at the end of an engine for a server that does not start.
    const patience = { timeout: this.#options.timeoutMs ?? defaultTimeoutMs, signal: this.#closing.signal }
    client.onclose = forget
    // Whoever waits for an answer is told only that the connection was closed.
    let isTooLong = false
    client.onerror = ({ message }) => {
      isTooLong ||= !http && message.startsWith('ReadBuffer exceeded')
    }
    const explained = (error: unknown): unknown => (isTooLong ? new Error(tooLong) : error)
    const list = async (): Promise<Tools> => {
      const { tools } = await client.listTools(undefined, patience)
      const schemaOf = (each: McpTool) => fromJsonSchema<Record<string, unknown>>(each.inputSchema as never, validator)
      return Object.fromEntries(this.#chosen(tools).map((each) => [each.name, this.#toolOf(each, schemaOf(each))]))
    }
    const connected: Connected = {
      client,
      list: () => {
        const asked = (listed ??= list().catch((error: unknown) => {
          if (listed === asked) changed()
          throw this.#unusable(explained(error))
        }))
        return asked
      },
      call: shared(client, forget, explained),
    }
    try {
      await client.connect(transport, patience).catch((error: unknown) => {
        throw this.#unusable(explained(error))
      })
      await connected.list()
    } catch (error) {
      await client.close().catch(() => {})
      throw error
    }
    return connected
  }

  #unusable(error: unknown): Error {
    return new Error(`${this.#description} can't be used: ${this.#wordsOf(error)}`)
  }

  /** Only the words: errors of transports carry requests, headers among them, and servers repeat what they were sent. */
  #wordsOf(error: unknown): string {
    return withoutSecrets(error instanceof Error ? error.message : 'it failed', this.#secrets).slice(0, 2_000)
  }

  #chosen(tools: readonly McpTool[]): readonly McpTool[] {
    const { only, needsApproval } = this.#options
    // One that is to be approved and is called otherwise would be called unasked.
    const named = [...(only ?? []), ...(typeof needsApproval === 'object' ? needsApproval : [])]
    const missing = named.filter((name) => !tools.some((each) => each.name === name))
    if (missing.length > 0)
      throw new Error(
        `it has no tool ${missing.join(', ')}; it has ${tools
          .map(({ name }) => name)
          .join(', ')
          .slice(0, 1_000)}`,
      )
    const chosen = tools.filter(({ name }) => only?.includes(name) ?? true)
    if (chosen.length > toolsMax) throw new Error(`it has ${chosen.length} tools; say in \`only\` which, at most ${toolsMax}`)
    return chosen
  }

  #toolOf(
    { name, description, annotations }: McpTool,
    input: Tool<Record<string, unknown>>['input'],
  ): Tool<Record<string, unknown>, unknown> {
    const { needsApproval, timeoutMs } = this.#options
    return tool({
      description: (description ?? name).slice(0, descriptionMax),
      input,
      needsApproval: typeof needsApproval === 'object' ? needsApproval.includes(name) : (needsApproval ?? false),
      // Only what says that it may be repeated is repeated after a crash.
      idempotent: annotations?.readOnlyHint === true || annotations?.idempotentHint === true,
      run: async (given, { signal }) => {
        const { call } = await this.#connect()
        try {
          return mcpResult(await call({ name, arguments: given }, { signal, timeout: timeoutMs ?? defaultTimeoutMs }))
        } catch (error) {
          throw new Error(this.#wordsOf(error))
        }
      },
    })
  }
}

const isLost = (error: unknown): boolean => error instanceof TypeError || (error instanceof Error && error.name === 'SdkHttpError')

/** Calls on one connection. After one that says that it is lost nobody takes it any more: a server that was started anew knows nothing of it. */
function shared(client: Client, forget: () => void, explained: (error: unknown) => unknown): Connected['call'] {
  let open = 0
  let lost = false
  return async (...call) => {
    open++
    try {
      return (await client.callTool(...call)) as McpResult
    } catch (error) {
      if (isLost(error)) {
        lost = true
        forget()
      }
      throw explained(error)
    } finally {
      if (--open === 0 && lost) client.close().catch(() => {})
    }
  }
}

/** What a server is given that must be shown nowhere. */
function secretsFor(server: McpServer): readonly Secret[] {
  if ('command' in server) return secretsOf(server.env ?? {})
  return secretsIn([...headerParts(server.headers ?? {}), ...new URL(server.url).searchParams])
}

async function loaded() {
  try {
    const [{ Client, StreamableHTTPClientTransport, fromJsonSchema }, { StdioClientTransport }, { CfWorkerJsonSchemaValidator }] =
      await Promise.all([
        import('@modelcontextprotocol/client'),
        import('@modelcontextprotocol/client/stdio'),
        import('@modelcontextprotocol/client/validators/cf-worker'),
      ])
    return { Client, StdioClientTransport, StreamableHTTPClientTransport, fromJsonSchema, validator: new CfWorkerJsonSchemaValidator() }
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new TuttiError('MODEL_UNAVAILABLE', 'tools of MCP servers need the package @modelcontextprotocol/client', {
      hint: 'npm install @modelcontextprotocol/client',
    })
  }
}
