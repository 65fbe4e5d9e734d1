import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a folder with all above it that are not there; the first that was made, if any. Node's own way to do so never comes back from
 * where nothing can be made and the system says that it is not there, as below /proc.
 */
export function makeFolder(folder: string, mode?: number): string | undefined {
  if (isFolder(folder)) return undefined
  const made = dirname(folder) === folder ? undefined : makeFolder(dirname(folder), mode)
  try {
    mkdirSync(folder, { mode })
    return made ?? folder
  } catch (error) {
    // Another process may have been faster.
    if (isFolder(folder)) return made
    throw error
  }
}

const isFolder = (path: string): boolean => existsSync(path) && statSync(path).isDirectory()
