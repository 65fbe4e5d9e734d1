import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Definition } from '../../define/definition.js'
import { isDefinition } from '../../define/definition.js'
import { exportsOf } from '../../define/exports-of.js'

/**
 * A function that evaluates a module anew for each schedule and gives its definition, so that what the module keeps in variables does not
 * leak from one schedule into the next. Modules that it imports are evaluated once, as always.
 */
export function freshModule(url: string | URL, name = 'default'): () => Promise<Definition<any>> {
  let made = 0
  return async () => {
    const fresh = new URL(url)
    fresh.searchParams.set('schedule', String(made++))
    // CommonJS is kept by its file, whatever its address says.
    if (fresh.protocol === 'file:') delete createRequire(fresh).cache[fileURLToPath(fresh)]
    const found = exportsOf((await import(/* @vite-ignore */ fresh.href)) as Readonly<Record<string, unknown>>)[name]
    const definition: unknown = typeof found === 'function' ? await (found as () => unknown)() : found
    if (!isDefinition(definition)) throw new TypeError(`the export '${name}' of ${String(url)} is no definition`)
    return definition as Definition<any>
  }
}
