import type { Provided, Resource } from '../define/resource.js'
import { provisionOf } from '../define/resource.js'
import type { State } from '../kernel/state.js'
import { shown } from '../define/option-check.js'
import { CodedFailure } from '../define/failure-of.js'
import { thrownText } from '../kernel/thrown-text.js'

const makesMax = 3

/** All resources of one run: those of the process, and those made for it; a make that fails is tried again. */
export async function runResources(provided: readonly Provided[], state: State): Promise<ReadonlyMap<string, unknown>> {
  const { run } = state
  if (run === null) return new Map()
  const of = Object.freeze({
    id: run.id,
    definition: run.shape.name,
    tags: run.tags,
    ...(run.session !== null && { session: run.session }),
  })
  const made = new Map<string, unknown>()
  try {
    for (const item of provided) {
      const provision = provisionOf(item)
      made.set(item.name, provision.kind === 'value' ? provision.value : await make(item.name, () => provision.make(of)))
    }
  } catch (error) {
    // What could not be made is what the run fails with; how the others let go is of no interest beside it.
    await disposeResources(provided, made).catch(() => {})
    throw error
  }
  return made
}

async function make(name: string, maker: () => unknown): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await maker()
    } catch (error) {
      if (attempt < makesMax) continue
      const why = thrownText(error)
      throw new CodedFailure({
        code: 'RESOURCE_MISSING',
        message: `the resource '${name}' could not be made: ${why}`,
        retryable: false,
        at: {},
      })
    }
  }
}

/** Lets go of what was made for one run: all of it, also if one throws. */
export async function disposeResources(provided: readonly Provided[], made: ReadonlyMap<string, unknown>): Promise<void> {
  const errors: unknown[] = []
  for (const item of provided) {
    if (provisionOf(item).kind === 'value') continue
    const value = made.get(item.name) as Partial<AsyncDisposable & Disposable> | null | undefined
    if (typeof value !== 'object' || value === null) continue
    try {
      await (value[Symbol.asyncDispose]?.() ?? value[Symbol.dispose]?.())
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw new Error(errors.map(String).join('; '))
}

/** A resource of the run that must be there. */
export function useOf<T>(resources: ReadonlyMap<string, unknown>, resource: Resource<T>): T {
  if (typeof resource?.name !== 'string') throw new TypeError(`use takes a resource: use(resource('db')), not ${shown(resource)}`)
  if (!resources.has(resource.name))
    throw new CodedFailure({
      code: 'RESOURCE_MISSING',
      message: `there is no resource '${resource.name}': give it with open({ resources: [resource.of(…)] })`,
      retryable: false,
      at: {},
    })
  return resources.get(resource.name) as T
}
