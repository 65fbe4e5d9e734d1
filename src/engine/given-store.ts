import { isLater, type Maybe } from '../define/maybe.js'
import { TuttiError } from '../define/tutti-error.js'
import { thrownText } from '../kernel/thrown-text.js'
import type { Store } from './store.js'
import { verdictsNow } from './store.js'

/**
 * A store as somebody has given it. It may fail with whatever its driver throws, and that says no more than that it could not be asked: nobody
 * who waits for it may take that for a fault of a step, nor of the run.
 */
export function givenStore(store: Store): Store {
  return Object.freeze<Store>({
    get promises() {
      return store.promises
    },
    join: (worker) => asked(() => store.join(worker)),
    leave: (worker, at) => asked(() => store.leave(worker, at)),
    beat: (worker) => asked(() => store.beat(worker)),
    fence: (peer, at) => asked(() => store.fence(peer, at)),
    claim: (wanted) => asked(() => store.claim(wanted)),
    commit: (batch) => asked(() => store.commit(batch)),
    load: (run, options) => asked(() => store.load(run, options)),
    list: (filter) => asked(() => store.list(filter)),
    marks: (filter) => asked(() => store.marks(filter)),
    record: (kind, key) => asked(() => store.record(kind, key)),
    records: (kind) => asked(() => store.records(kind)),
    blob: (hash) => asked(() => store.blob(hash)),
    moved: (worker) => store.moved(worker),
    mine: (worker) => asked(() => store.mine(worker)),
    onMoved: (wake) => store.onMoved(wake),
    gc: (what) => asked(() => store.gc(what)),
    close: () => asked(() => store.close()),
  })
}

function asked<T>(ask: () => Promise<T>): Promise<T> {
  try {
    const said: Maybe<T> = ask()
    // What is known already is told as it is: whoever knows how to look need not wait.
    const isKnown = isLater(said) && verdictsNow(said as Promise<never>) !== undefined
    return isKnown ? said : Promise.resolve(said).catch(failed)
  } catch (error) {
    return Promise.reject(outOfReach(error))
  }
}

function failed(error: unknown): never {
  throw outOfReach(error)
}

function outOfReach(error: unknown): unknown {
  if (TuttiError.is(error)) return error
  return new TuttiError('STORE_UNAVAILABLE', `the store failed: ${thrownText(error)}`, {
    hint: 'it was given to open(); the cause is what it failed with',
    cause: error,
  })
}
