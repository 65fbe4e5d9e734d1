import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { makeFolder } from '../models/make-folder.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption } from './cli-command.js'
import { CliError } from './cli-error.js'
import { exitCode } from './exit-code.js'
import { projectFiles } from './project-files.js'
import { escaped, shown } from './shown.js'
import { quoted } from './told.js'

interface Options {
  readonly json?: boolean
}

export const command: CliCommand = {
  spec: (command) => command.argument('[folder]', 'where; it is made if it is not there', '.').option(...jsonOption),
  run: async (terminal, [given], { json }: Options) => {
    const folder = resolve(given as string)
    const files = projectFiles({ name: packageName(basename(folder)), ...own() })
    const taken = Object.keys(files).filter((file) => existsSync(join(folder, file)))
    if (taken.length > 0)
      throw new CliError(
        exitCode.failed,
        `${taken.join(', ')} ${taken.length === 1 ? 'is' : 'are'} there already: nothing was written`,
        'name another folder',
      )
    made(folder, given as string)
    const there = relative('.', folder)
    for (const [file, text] of Object.entries(files)) {
      writeFileSync(join(folder, file), text, { flag: 'wx' })
      if (json !== true) terminal.data(shown`${join(there, file)}`)
    }
    if (json === true) terminal.json({ files: Object.keys(files).map((file) => join(there, file)) })
    terminal.note(shown`next: ${escaped(`${there === '' ? '' : `cd ${quoted(there)} && `}npm install && npm start && npm test`, 'path')}`)
    return exitCode.done
  },
}

function made(folder: string, given: string): void {
  try {
    makeFolder(folder)
  } catch (error) {
    throw new CliError(exitCode.failed, `the folder ${given} could not be made: ${whyNot(error)}`, 'name another folder')
  }
}

function whyNot(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'EEXIST' || code === 'ENOTDIR' ? 'it, or a part of its path, is a file' : message
}

/** What npm takes for a name. */
function packageName(text: string): string {
  const name = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  return name === '' ? 'workflow' : name
}

/** The versions that a project of now depends on: this one, and what it loads TypeScript with. */
function own(): { readonly tutti: string; readonly tsx: string } {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  const { version, dependencies } = JSON.parse(text) as { version: string; dependencies: Record<string, string> }
  return { tutti: `^${version}`, tsx: dependencies['tsx'] ?? '*' }
}
