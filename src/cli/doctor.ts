import { accessSync, constants, existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, resolve } from 'node:path'
import { TuttiError } from '../define/tutti-error.js'
import { explainModels } from '../models/resolve.js'
import { openStore, storePlace } from '../stores/open-store.js'
import { ask, loadDriver, openDatabase } from '../stores/sqlite-driver.js'
import { failureOf } from '../stores/sqlite-failure.js'
import { migrations } from '../stores/sqlite-schema.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { exitCode } from './exit-code.js'
import { escaped, shown } from './shown.js'
import { isThere } from './stores.js'

interface Options {
  readonly store?: string
  readonly json?: boolean
}

/** What was looked at, what was found, and what to do if that is not good. */
interface Finding {
  readonly name: string
  readonly ok: boolean
  readonly found: string
  readonly fix?: string
}

export const command: CliCommand = {
  spec: (command) => command.option(...storeOption).option(...jsonOption),
  run: async (terminal, _, { store, json }: Options) => {
    const findings = [node(), await driver(), await storeThere(store), await typescript(), models(), await ports()]
    if (json === true) terminal.json(findings)
    else
      for (const { name, ok, found, fix } of findings) {
        terminal.data(shown`${escaped(ok ? '✓' : '✗', ok ? 'good' : 'bad')} ${name}: ${found}`)
        if (fix !== undefined) terminal.data(shown`  ${escaped(`fix: ${fix}`, ok ? 'dim' : 'retry')}`)
      }
    return findings.every(({ ok }) => ok) ? exitCode.done : exitCode.failed
  },
}

const nodeMin = [20, 19] as const

function node(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const ok = major > nodeMin[0] || (major === nodeMin[0] && minor >= nodeMin[1])
  return { name: 'Node', ok, found: process.version, ...(!ok && { fix: `install Node ${nodeMin.join('.')} or later` }) }
}

async function driver(): Promise<Finding> {
  try {
    const loaded = await loadDriver()
    const db = openDatabase(loaded, ':memory:', 'write')
    const [version] = ask(db, 'sqlite_version()')
    db.close()
    const from = process.getBuiltinModule('node:sqlite') === undefined ? '@photostructure/sqlite' : 'Node itself'
    return { name: 'SQLite', ok: true, found: `${String(version)}, from ${from}` }
  } catch (error) {
    return { name: 'SQLite', ok: false, found: messageOf(error), fix: 'npm install @photostructure/sqlite, or use Node 22.13 or later' }
  }
}

async function storeThere(given: string | undefined): Promise<Finding> {
  const name = 'Store'
  try {
    const place = storePlace(given)
    if (place.kind === 'memory') return { name, ok: true, found: 'in memory: nothing outlives its process' }
    if (!isThere(place.path)) return noStore(place.path)
    const store = await openStore(place, 'process')
    const runs = await store.list({ limit: 1 })
    await store.close()
    const { version, damage } = await lookInto(resolve(place.path))
    if (damage !== null)
      return {
        name,
        ok: false,
        found: `${place.path} is damaged: ${damage}`,
        fix: 'restore it from a backup, or name another with --store',
      }
    const found = `${place.path}, version ${version} of ${migrations.length}, ${runs.length === 0 ? 'no runs yet' : 'with runs'}`
    return { name, ok: true, found }
  } catch (error) {
    const hint = TuttiError.is(error) ? error.hint : undefined
    return { name, ok: false, found: messageOf(error), fix: hint ?? 'name another with --store' }
  }
}

/** The folder that a store would be made in, or the nearest one above it, must take it. */
function noStore(path: string): Finding {
  let folder = dirname(resolve(path))
  while (!existsSync(folder)) folder = dirname(folder)
  const why = whyNotIn(folder)
  return why === null
    ? { name: 'Store', ok: true, found: `none yet at ${path}; the first run makes it` }
    : { name: 'Store', ok: false, found: `none at ${path}, and ${folder} ${why}`, fix: 'name another place with --store' }
}

function whyNotIn(folder: string): string | null {
  try {
    accessSync(folder, constants.W_OK)
    return null
  } catch {
    return 'may not be written to'
  }
}

/** Reads all of the file: what is damaged where nobody has looked yet is found too. */
async function lookInto(path: string): Promise<{ readonly version: string; readonly damage: string | null }> {
  const db = openDatabase(await loadDriver(), path, 'read')
  try {
    const [version] = ask(db, 'user_version', 'from pragma_user_version')
    const [checked] = ask(db, 'quick_check', 'from pragma_quick_check limit 1')
    return { version: String(version), damage: checked === 'ok' ? null : String(checked) }
  } catch (error) {
    throw failureOf(error, path)
  } finally {
    db.close()
  }
}

async function typescript(): Promise<Finding> {
  try {
    await import('tsx/esm/api')
    return { name: 'TypeScript', ok: true, found: 'tsx loads .ts files' }
  } catch (error) {
    return { name: 'TypeScript', ok: false, found: messageOf(error), fix: 'npm install tsx' }
  }
}

/** Keys are named, never shown. */
function models(): Finding {
  const { model, why } = explainModels(process.env)
  const name = 'Model'
  if (model === 'none') return { name, ok: false, found: why, fix: 'set OPENAI_API_KEY, ANTHROPIC_API_KEY or TUTTI_MODEL' }
  const simulated = model === 'sim' && { fix: 'for a real one, set OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENROUTER_API_KEY or TUTTI_MODEL' }
  return { name, ok: true, found: `${model}: ${why}`, ...simulated }
}

async function ports(): Promise<Finding> {
  const server = createServer()
  try {
    await new Promise<void>((done, failed) => server.once('error', failed).listen(0, '127.0.0.1', done))
    return { name: 'Ports', ok: true, found: 'a port of 127.0.0.1 can be opened' }
  } catch (error) {
    return { name: 'Ports', ok: false, found: messageOf(error), fix: 'allow programs to listen on 127.0.0.1' }
  } finally {
    server.close()
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
