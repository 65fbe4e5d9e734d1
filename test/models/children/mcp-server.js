// An MCP server over stdio that offers `grow`, and after each call of it one tool more, which it tells. Started with a number, it answers with so
// many characters.
import { createInterface } from 'node:readline'

/** @param {object} message */
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const tools = [{ name: 'grow', inputSchema: { type: 'object' } }]

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  switch (method) {
    case 'initialize': {
      const { protocolVersion } = params
      return send({
        id,
        result: { protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name: 's', version: '1' } },
      })
    }
    case 'tools/list':
      return send({ id, result: { tools } })
    case 'tools/call':
      tools.push({ name: `tool${tools.length}`, inputSchema: { type: 'object' } })
      send({ method: 'notifications/tools/list_changed' })
      return send({ id, result: { content: [{ type: 'text', text: 'x'.repeat(Number(process.argv[2] ?? 0)) || 'grown' }] } })
    default:
      return send({ id, error: { code: -32601, message: 'no such method' } })
  }
})
