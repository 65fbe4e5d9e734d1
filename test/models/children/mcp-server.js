// An MCP server over stdio that offers `grow`, and after each call of it one tool more, which it tells. Started with a number, it answers with so
// many characters; with a second one, it describes its tools with so many.
import { createInterface } from 'node:readline'

/** @param {object} message */
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const [, , answerLength = '0', listLength = '0'] = process.argv
const tools = [{ name: 'grow', description: 'x'.repeat(Number(listLength)), inputSchema: { type: 'object' } }]

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
      tools.push({ name: `tool${tools.length}`, description: '', inputSchema: { type: 'object' } })
      send({ method: 'notifications/tools/list_changed' })
      return send({ id, result: { content: [{ type: 'text', text: 'x'.repeat(Number(answerLength)) || 'grown' }] } })
    default:
      return send({ id, error: { code: -32601, message: 'no such method' } })
  }
})
