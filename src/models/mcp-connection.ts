import type { Client, Tool as McpTool } from '@modelcontextprotocol/client'
import { type Tool, tool } from '../define/tool.js'
import type { OpenToolbox } from '../define/toolbox.js'
import { TuttiError } from '../define/tutti-error.js'
import { type McpResult, mcpResult } from './mcp-result.js'

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

interface Connected {
  readonly client: Client
  /** Gives the connection up, so that the next who needs one makes another. */
  readonly end: () => void
  readonly tools: Readonly<Record<string, Tool<any, unknown>>>
}

/**
 * The connection of one engine to one MCP server.
 *
 * 1. There is at most one at a time: whoever comes while it is being made waits for the same.
 * 2. One that has ended, or was never made, is made anew by the next who needs it. A call that it ended under fails.
 * 3. After `close` none is made.
 */
export class McpConnection implements OpenToolbox {
  readonly #server: McpServer
  readonly #options: McpOptions
  readonly #description: string
  #connected: Promise<Connected> | null = null
  #closed = false

  constructor(server: McpServer, options: McpOptions, description: string) {
    this.#server = server
    this.#options = options
    this.#description = description
  }

  async list(): Promise<Readonly<Record<string, Tool<any, unknown>>>> {
    return (await this.#connect()).tools
  }

  async close(): Promise<void> {
    this.#closed = true
    const connected = await this.#connected?.catch(() => null)
    await connected?.client.close()
  }

  #connect(): Promise<Connected> {
    if (this.#closed) throw new TuttiError('CLOSED', `${this.#description} was closed with its engine`)
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
    // The validator that makes no code of what a server sends.
    const client = new Client(
      { name: 'tutti', version: '0.1.0' },
      { jsonSchemaValidator: validator, ...(http && { versionNegotiation: { mode: 'auto' } }) },
    )
    const transport = http
      ? new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers: { ...server.headers } } })
      : new StdioClientTransport({
          command: server.command,
          args: [...(server.args ?? [])],
          stderr: 'ignore',
          ...(server.env !== undefined && { env: { ...server.env } }),
          ...(server.cwd !== undefined && { cwd: server.cwd }),
        })
    const timeout = this.#options.timeoutMs ?? defaultTimeoutMs
    client.onclose = forget
    try {
      await client.connect(transport, { timeout })
      const { tools } = await client.listTools(undefined, { timeout })
      const schemaOf = (each: McpTool) => fromJsonSchema<Record<string, unknown>>(each.inputSchema as never, validator)
      const made = this.#chosen(tools).map((each) => [each.name, this.#toolOf(each, schemaOf(each))] as const)
      const end = () => {
        forget()
        client.close().catch(() => {})
      }
      return { client, end, tools: Object.fromEntries(made) }
    } catch (error) {
      await client.close().catch(() => {})
      throw new Error(`${this.#description} can't be used: ${messageOf(error)}`)
    }
  }

  #chosen(tools: readonly McpTool[]): readonly McpTool[] {
    const { only } = this.#options
    const missing = (only ?? []).filter((name) => !tools.some((each) => each.name === name))
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
        const { client, end } = await this.#connect()
        try {
          return mcpResult(
            (await client.callTool({ name, arguments: given }, { signal, timeout: timeoutMs ?? defaultTimeoutMs })) as McpResult,
          )
        } catch (error) {
          // A server that was started anew knows nothing of this connection.
          if (isLost(error)) end()
          throw new Error(messageOf(error))
        }
      },
    })
  }
}

const isLost = (error: unknown): boolean => error instanceof TypeError || (error instanceof Error && error.name === 'SdkHttpError')

/** Only the words: errors of transports carry requests, headers among them. */
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : 'it failed').slice(0, 2_000)

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
