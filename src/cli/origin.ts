import { resolve } from 'node:path'
import type { Tags } from '../define/tags.js'

/** Which file and export a run was started from, so that any process can go on with it. */
export interface Origin {
  readonly file: string
  readonly export: string
}

const fileTag = 'tutti.file'
const exportTag = 'tutti.export'

/** An origin is kept in the tags of its run: in the same write as its start, in every store, and with its child runs too. */
export function tagsOf({ file, export: name }: Origin): Tags {
  return { [fileTag]: resolve(file), [exportTag]: name }
}

/** Where a run was started from; null if that was not by `tutti run`. */
export function originOf(tags: Tags): Origin | null {
  const file = tags[fileTag]
  return file === undefined ? null : { file, export: tags[exportTag] ?? 'default' }
}
