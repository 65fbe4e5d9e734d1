import { aBoolean, aRecord, aText, either, type Kind, optionProblems, someMs, texts } from '../define/option-check.js'
import { type Toolbox, toolbox } from '../define/toolbox.js'
import { McpConnection, type McpOptions, type McpServer } from './mcp-connection.js'

/**
 * The tools of an MCP server, for an agent's `tools`: `{ files: mcp({ command: 'npx', args: […] }) }` gives `files_read_file` and so on. The
 * server is started when a turn first needs it, used by all runs of the engine, and closed with it. What it is given as environment or
 * headers is shown nowhere.
 */
export function mcp(server: McpServer, options: McpOptions = {}): Toolbox {
  check(server, options)
  const where = { ...server }
  const description = `the MCP server ${'url' in where ? withoutSecrets(where.url) : where.command}`
  return toolbox({ description, open: () => new McpConnection(where, { ...options }, description) })
}

const serverKinds: Readonly<Record<string, Kind>> = {
  command: aText,
  args: { is: (value) => Array.isArray(value) && value.every((arg) => typeof arg === 'string'), words: 'a list of strings' },
  env: aRecord,
  cwd: aText,
  url: { is: isHttp, words: 'an http or https address' },
  headers: aRecord,
}
const optionKinds: Readonly<Record<string, Kind>> = { only: texts, needsApproval: either(aBoolean, texts), timeoutMs: someMs }

function check(server: McpServer, options: McpOptions): void {
  const example = "mcp({ command: 'npx', args: ['-y', 'some-server'] }) or mcp({ url: 'https://example.com/mcp' })"
  if (!aRecord.is(server) || !aRecord.is(options)) throw new TypeError(`mcp() takes where the server is: ${example}`)
  const problems = [...optionProblems({ ...server }, serverKinds, 'server'), ...optionProblems({ ...options }, optionKinds, 'options')]
  if (problems.length > 0) throw new TypeError(`mcp(): ${problems.map(({ where, message }) => `${where}: ${message}`).join('; ')}`)
  if ('url' in server === 'command' in server) throw new TypeError(`an MCP server has either a command or a url: ${example}`)
}

function isHttp(value: unknown): boolean {
  return (typeof value === 'string' || value instanceof URL) && URL.canParse(String(value)) && /^https?:$/.test(new URL(value).protocol)
}

/** An address may have a key in its query or a password before its host. */
function withoutSecrets(address: string | URL): string {
  const { origin, pathname } = new URL(address)
  return origin + pathname
}
