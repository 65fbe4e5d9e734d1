import type { Definition } from '../../define/definition.js'
import { withInternals } from '../../define/definition.js'
import type { Maybe } from '../../define/maybe.js'
import { TuttiError } from '../../define/tutti-error.js'
import type { Engine } from '../../engine/engine.js'
import { engineOf } from '../../engine/engine-of.js'
import { runNotFound } from '../../engine/run-not-found.js'
import type { Tutti } from '../../engine/tutti.js'
import { closedEngine } from '../../engine/while-open.js'
import type { Exploration } from './exploration.js'
import type { ExploreOptions } from './explore.js'
import { checkExploreRun } from './explore-check.js'
import { exploreWith } from './explore.js'
import { journalsOf } from './journals.js'
import { recordedIn } from './recorded.js'

/** How a run that was recorded is checked. */
export interface ExploreRunOptions extends Omit<ExploreOptions<unknown, unknown>, 'input' | 'models' | 'answers'> {
  /** Whose code is played; by default what the engine has under the name that the run has. A function makes one for each schedule. */
  definition?: Definition<any> | (() => Maybe<Definition<any>>)
  /** What happens where an order leaves the record: the path stops there, or it goes on, performs what it needs and calls simulated models. */
  beyond?: 'stop' | 'perform'
}

/**
 * Plays a recorded run in other orders: what its activities gave, and what people answered, is given back. An order in which an agent is
 * shown something else is a finding of its own.
 */
export async function exploreRun(tutti: Tutti, id: string, options: ExploreRunOptions = {}): Promise<Exploration> {
  checkExploreRun(options)
  const engine = engineOf(tutti)
  if (engine.closed) throw closedEngine()
  const journal = await engine.journal(id)
  const [started] = journal
  if (started?.type !== 'run.started') throw runNotFound(id)
  const { definition = definitionOf(engine, started.definition), beyond = 'stop', ...rest } = options
  const recorded = recordedIn(started, await journalsOf(engine, id, journal), beyond)
  return exploreWith(definition as Definition<unknown>, { ...rest, input: started.input }, recorded)
}

function definitionOf(engine: Engine, name: string): Definition {
  const given = engine.options.definitions.find((definition) => definition.name === name)
  if (given !== undefined) return given
  const internals = engine.definition(name)
  if (internals === null)
    throw new TuttiError('DEFINITION_NOT_FOUND', `there is no definition '${name}' in this process`, {
      hint: 'give it with open({ definitions: [ … ] }), or as exploreRun(tutti, id, { definition })',
    })
  const { version, digest } = internals.shape
  return withInternals({ name, version, digest, hints: [] }, internals)
}
