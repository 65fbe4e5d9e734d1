import { readFileSync } from 'node:fs'
import { text as textFrom } from 'node:stream/consumers'
import { notFound, wrongUse } from './cli-error.js'

/** The value of an argument that is JSON, `@` and a file that has it, or `-` for standard input. */
export async function jsonArgument(given: string, what: string): Promise<unknown> {
  const [text, from] = await textOf(given)
  try {
    // Some editors begin every file with a mark of how it is encoded.
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    throw wrongUse(`${what} is no JSON${from}`, `a text goes in quotes of its own: '"hello"'`)
  }
}

async function textOf(given: string): Promise<readonly [text: string, from: string]> {
  const file = given === '-' ? 'standard input' : given.startsWith('@') ? given.slice(1) : null
  if (file === null) return [given, `: ${given.slice(0, 80)}`]
  try {
    // As a stream: whoever gives it may take their time, and may have made it one that says so instead of waiting.
    return given === '-' ? [await textFrom(process.stdin), `, from ${file}`] : [readFileSync(file, 'utf8'), `, in ${file}`]
  } catch (error) {
    throw notFound(`${file} could not be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}
