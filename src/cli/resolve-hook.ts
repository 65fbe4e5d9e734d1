import type { ResolveHook } from 'node:module'

/**
 * How the files of users are found: one that has no `tutti` of its own is given the one whose command line runs it, and TypeScript is
 * always a module, also in a folder whose package.json does not say so.
 */
export const resolve: ResolveHook = async (specifier, context, next) => {
  const found = await withTutti(specifier, (more) => next(specifier, { ...context, ...more }))
  return /\.tsx?(?:\?|$)/.test(found.url) ? { ...found, format: 'module' } : found
}

async function withTutti<T>(specifier: string, find: (more: { parentURL?: string }) => T | Promise<T>): Promise<T> {
  try {
    return await find({})
  } catch (error) {
    if (specifier !== 'tutti' && !specifier.startsWith('tutti/')) throw error
    return find({ parentURL: import.meta.url })
  }
}
