import { type Definition, internalsOf } from '../define/definition.js'
import { explainModels } from '../models/resolve.js'
import type { Loaded } from './load-file.js'
import { escaped, type Shown } from './shown.js'

/** Which model answers for agents that name none, and why; null if there are none, or the file brings its own. */
export function whichModel({ definition, given }: Loaded): Shown | null {
  if (given.models !== undefined || !hasUnnamedModel(definition)) return null
  const { model, why } = explainModels(process.env)
  return escaped(`model: ${model} (${why})`, model === 'sim' || model === 'none' ? 'retry' : 'dim')
}

function hasUnnamedModel(definition: Definition): boolean {
  const internals = internalsOf(definition)
  if (internals.kind === 'topology')
    return Object.values(internals.agents).some(({ act, options }) => act === null && options.model === undefined)
  return Object.values(internals.steps).some((step) => step.kind === 'child' && hasUnnamedModel(step.child))
}
