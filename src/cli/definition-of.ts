import { type Definition, internalsOf } from '../define/definition.js'
import type { RunRow } from '../engine/store.js'

/** The definition that a run is of: what was loaded, or, of a child run, one that a step of it runs; what was loaded, if there is none. */
export function definitionOf(loaded: Definition, { definition: name }: Pick<RunRow, 'definition'>): Definition {
  return named(loaded, name) ?? loaded
}

function named(definition: Definition, name: string): Definition | null {
  if (definition.name === name) return definition
  const internals = internalsOf(definition)
  if (internals.kind === 'topology') return null
  for (const step of Object.values(internals.steps)) {
    const found = step.kind === 'child' ? named(step.child, name) : null
    if (found !== null) return found
  }
  return null
}
