import { isStorable } from '../define/storable.js'
import { TuttiError } from '../define/tutti-error.js'
import type { Append, ListFilter, Put } from '../engine/store.js'
import { isAppend } from '../engine/store.js'

/** Refuses an item with an id, a key, a tag or a version that not every store could give back as it was. */
export function checkNames(item: Append | Put): void {
  if (!isAppend(item)) checkPut(item)
  else if (item.create !== undefined || item.version !== undefined || item.marks !== undefined || item.puts !== undefined) checkAppend(item)
}

function checkAppend({ run, create, version, marks = [], puts = [] }: Append): void {
  if (create !== undefined) {
    check('the id of a run', run)
    check('the name of a definition', create.definition)
    check('the version of a definition', create.version)
    for (const [key, value] of Object.entries(create.tags)) {
      check('a tag', key)
      check('a tag', value)
    }
  }
  if (version !== undefined) check('the version of a definition', version)
  for (const { kind, key } of marks) {
    check('the kind of a mark', kind)
    check('the key of a mark', key)
  }
  for (const put of puts) checkPut(put)
}

function checkPut({ kind, key, puts = [] }: Put): void {
  check('the kind of a record', kind)
  check('a key', key)
  for (const put of puts) checkPut(put)
}

function check(what: string, text: string): void {
  if (!isStorable(text))
    throw new TuttiError('INVALID_INPUT', `${what} may not contain control characters: ${JSON.stringify(text)}`, { hint: 'take them out' })
}

/** Whether a listing could find anything: a database that cuts a name would find what another one means. */
export function canBeListed({ definition = '', prefix = '', tags = {} }: ListFilter): boolean {
  return [definition, prefix, ...Object.entries(tags).flat()].every(isStorable)
}
