import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder of its own, which goes with the test. */
export class Folder implements Disposable {
  readonly path: string = mkdtempSync(join(tmpdir(), 'tutti-store-'))
  #files = 0

  /** The path of a store that is not there yet, in a folder that is not there yet. */
  file(): string {
    return join(this.path, String(++this.#files), 'tutti.db')
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}
