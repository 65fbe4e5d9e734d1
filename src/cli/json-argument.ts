import { readFileSync } from 'node:fs'
import { notFound, wrongUse } from './cli-error.js'

/** The value of an argument that is JSON, `@` and a file that has it, or `-` for standard input. */
export function jsonArgument(given: string, what: string): unknown {
  const [text, from] = textOf(given)
  try {
    return JSON.parse(text)
  } catch {
    throw wrongUse(`${what} is no JSON${from}`, `a text goes in quotes of its own: '"hello"'`)
  }
}

function textOf(given: string): readonly [text: string, from: string] {
  if (given === '-') return [readFileSync(0, 'utf8'), ', from standard input']
  if (!given.startsWith('@')) return [given, `: ${given.slice(0, 80)}`]
  const file = given.slice(1)
  try {
    return [readFileSync(file, 'utf8'), `, in ${file}`]
  } catch (error) {
    throw notFound(`${file} could not be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}
