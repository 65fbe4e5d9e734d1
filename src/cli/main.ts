#!/usr/bin/env node
import { readFileSync } from 'node:fs'

const args = process.argv.slice(2)
// Nothing else is loaded for it, whatever follows.
if (args[0] === '--version' || args[0] === '-V') {
  process.stdout.write(`${versionOf(new URL('../../package.json', import.meta.url))}\n`)
} else {
  const { start } = await import('./start.js')
  await start(args, () => versionOf(new URL('../../package.json', import.meta.url)))
}

function versionOf(file: URL): string {
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
