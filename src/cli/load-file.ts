import { existsSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Definition, isDefinition } from '../define/definition.js'
import { exportsOf } from '../define/exports-of.js'
import type { OpenOptions } from '../engine/tutti.js'
import { TuttiError } from '../define/tutti-error.js'
import { CliError, notFound, wrongUse } from './cli-error.js'
import { exitCode } from './exit-code.js'
import { keepDataClean } from './keep-data-clean.js'
import type { Origin } from './origin.js'
import { hintOf, hookResolution } from './resolve-hook.js'

/** What a file gives: a definition and, if it exports them, what it is opened with. */
export interface Loaded {
  readonly definition: Definition
  readonly origin: Origin
  /** The exports `resources` and `models`, as `open` takes them. */
  readonly given: Pick<OpenOptions, 'resources' | 'models'>
  /** The export `check`: what else a race check is made with. */
  readonly check: object
}

const compiled = ['.ts', '.mts', '.cts', '.tsx', '.jsx']
const plain = ['.js', '.mjs', '.cjs']

/** Loads the definition that a file exports. From then on, what code prints is kept apart from data. */
export async function loadFile(origin: Origin): Promise<Loaded> {
  const file = resolve(origin.file)
  const ending = extname(file)
  if (!compiled.includes(ending) && !plain.includes(ending))
    throw wrongUse(`${origin.file} is no TypeScript or JavaScript file`, `name one that ends in ${[...compiled, ...plain].join(', ')}`)
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) throw notFound(`there is no file ${origin.file}`)
  const exports = await loadedFrom(file, compiled.includes(ending))
  const definition = exports[origin.export]
  if (!isDefinition(definition)) throw noDefinition(origin, exports)
  const given: Record<string, unknown> = {}
  for (const name of ['resources', 'models']) if (exports[name] !== undefined) given[name] = exports[name]
  const check = typeof exports['check'] === 'object' && exports['check'] !== null ? exports['check'] : {}
  return { definition, origin: { file, export: origin.export }, given, check }
}

function noDefinition({ file, export: name }: Origin, exports: Readonly<Record<string, unknown>>): CliError {
  return wrongUse(`the ${name} export of ${file} is no definition`, hintFor(exports, name))
}

function hintFor(exports: Readonly<Record<string, unknown>>, name: string): string {
  if (typeof exports[name] === 'function')
    return 'it is a function: export what that gives; a check evaluates the file anew for every order'
  const others = Object.keys(exports).filter((other) => isDefinition(exports[other]))
  if (others.length === 0) return 'export default topology({ … }) or graph(…).step(…).output()'
  return `it exports ${others.join(', ')}: export ${others.length === 1 ? 'that' : 'one of them'} as the default`
}

async function loadedFrom(file: string, isCompiled: boolean): Promise<Readonly<Record<string, unknown>>> {
  // What is loaded after this goes through the thread of the hooks, which takes much longer: what every such file needs comes first.
  await import('../index.js')
  if (isCompiled) {
    const tsx = await import('tsx/esm/api')
    tsx.register({ tsconfig: configOf(dirname(file)) })
  }
  // It costs a thread: a plain file that has what it needs is loaded without.
  if (isCompiled || !hasTutti(file)) hookResolution()
  let module: Readonly<Record<string, unknown>>
  keepDataClean()
  try {
    module = (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    // It says what is wrong with its definition better than we could.
    if (TuttiError.is(error)) throw error
    const [first, ...more] = (error instanceof Error ? error.message : String(error)).split('\n')
    throw new CliError(exitCode.failed, `${file} could not be loaded: ${first}`, hintOf(error), [...more, ...placeIn(error)])
  }
  return exportsOf(module)
}

/** Where code of the user's was when it threw: the innermost place that is no part of Node, of a package or of this one. */
function placeIn(error: unknown): readonly string[] {
  const stack = error instanceof Error ? String(error.stack) : ''
  const places = [...stack.matchAll(/^ +at (?:.*\()?(?:async )?(.+:\d+:\d+)\)?$/gm)].map(([, place = '']) => place)
  const own = places.find((place) => !/^node:|[/\\]node_modules[/\\]/.test(place) && !place.startsWith(here))
  return own === undefined ? [] : [`  at ${own.startsWith('file:') ? fileURLToPath(own) : own}`]
}

const here = new URL('..', import.meta.url).href

function hasTutti(file: string): boolean {
  try {
    createRequire(file).resolve('tutti/package.json')
    return true
  } catch {
    return false
  }
}

/** The nearest configuration above a file, so that it means the same wherever the command is called. */
function configOf(folder: string): string | false {
  const file = join(folder, 'tsconfig.json')
  if (existsSync(file)) return file
  const above = dirname(folder)
  return above === folder ? false : configOf(above)
}
