import type { Engine } from './engine.js'
import type { Tutti } from './tutti.js'

// Registered, so that a handle is known even when two copies of this package are loaded.
const key: unique symbol = Symbol.for('tutti.engine')

/** Puts the engine where `engineOf` finds it and nobody stumbles over it. */
export function withEngine<T extends object>(handle: T, engine: Engine): T {
  return Object.defineProperty(handle, key, { value: engine })
}

/** The engine behind a handle. */
export function engineOf(tutti: Tutti): Engine {
  const engine = (tutti as { readonly [key]?: Engine })[key]
  if (engine === undefined) throw new TypeError('this is no engine that open() has given')
  return engine
}
