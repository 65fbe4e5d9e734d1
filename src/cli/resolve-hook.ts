import * as module from 'node:module'

/** What is found, as far as it is looked at. */
interface Found {
  readonly url: string
  readonly format?: string | null | undefined
}

/** Where it is looked for: in what was loaded from there. */
interface Context {
  readonly parentURL?: string | undefined
}

type Next<T> = (specifier: string, context: Context) => T

/** Calls its hook in this thread, where Node can; before that, hooks had a thread of their own. */
interface Hooking {
  readonly registerHooks?: (hooks: { resolve(specifier: string, context: Context, next: Next<Found>): Found }) => unknown
}

/**
 * Sets up how the files of users are found: one that has no `tutti` of its own is given the one whose command line runs it, and TypeScript
 * is always a module, also in a folder whose package.json does not say so.
 */
export function hookResolution(): void {
  const { registerHooks } = module as Hooking
  if (registerHooks === undefined) module.register(new URL('./resolve-hook.js', import.meta.url))
  else registerHooks({ resolve: resolveAtOnce })
}

/** What to do about a file that was not given `tutti`: hooks in a thread of their own are not asked what CommonJS requires. */
export function hintOf(error: unknown): string | undefined {
  const isMissing = error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND'
  if (!isMissing || !/^Cannot find module 'tutti['/]/.test(error.message)) return undefined
  return "with this Node, require() finds only what is installed: run npm install tutti beside the file, or name it .mjs and import from 'tutti'"
}

/** The hook, for a Node that gives it a thread of its own. */
export async function resolve(specifier: string, context: Context, next: Next<Promise<Found>>): Promise<Found> {
  try {
    const found = asModule(await next(specifier, context))
    return isNamed(context) ? withoutRequire(found) : found
  } catch (error) {
    if (!isTutti(specifier)) throw error
    return next(specifier, { ...context, parentURL: import.meta.url })
  }
}

function resolveAtOnce(specifier: string, context: Context, next: Next<Found>): Found {
  try {
    return asModule(next(specifier, context))
  } catch (error) {
    if (!isTutti(specifier)) throw error
    return next(specifier, { ...context, parentURL: import.meta.url })
  }
}

const isTutti = (specifier: string): boolean => specifier === 'tutti' || specifier.startsWith('tutti/')

/** What tsx would prepare as CommonJS is marked in its address: there is no such thing here. */
function asModule(found: Found): Found {
  const url = found.url.replace(/(\.tsx?)(?:%3F|\?)tsx-commonjs.*$/, '$1')
  return /\.tsx?(?:\?|$)/.test(url) ? { ...found, url, format: 'module' } : found
}

const own = new URL('..', import.meta.url).href

/** Whether it is a file that a command was given: those it imports are asked for by itself. */
const isNamed = ({ parentURL }: Context): boolean => parentURL?.startsWith(own) === true

/** CommonJS of TypeScript can't require a package of modules, as this one is, where hooks have a thread of their own. */
function withoutRequire(found: Found): Found {
  return /\.cts(?:\?|$)/.test(found.url) ? { ...found, format: 'module' } : found
}
