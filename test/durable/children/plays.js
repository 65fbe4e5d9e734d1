// What the children of the tests of steps execute, and the tests after them.

const delay = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))
const forEver = () => new Promise(() => setInterval(() => {}, 60_000))

/** @param {any} tutti @param {string} name @param {(turn: any) => unknown} act */
const solo = ({ topology }, name, act, /** @type {object} */ options = {}) =>
  topology({ name, flows: ['Start -> A -> End'], agents: { A: { act, ...options } } })

export const chainsOutput = Array.from({ length: 6 }, (_, n) => `fetched ${n}, stored`)

/** Six chains of two steps, in parallel, each as slow as chance has it. @param {any} tutti @param {(line: string) => void} write */
export function chains(tutti, write) {
  return solo(tutti, 'chains', async (turn) => {
    const chain = async (/** @type {number} */ n) => {
      const fetched = await turn.step('fetch', async () => {
        await delay(Math.random() * 8)
        return `fetched ${n}`
      })
      return turn.step('store', async (/** @type {any} */ ctx) => {
        await delay(Math.random() * 8)
        write(`store ${ctx.idempotencyKey} ${fetched}`)
        return `${fetched}, stored`
      })
    }
    return turn.finish(await Promise.all(Array.from({ length: 6 }, (_, n) => chain(n))))
  })
}

/** Steps of these names, one after the other; each says that it was executed; the one that is named hangs. */
export function inOrder(
  /** @type {any} */ tutti,
  /** @type {(line: string) => void} */ write,
  /** @type {{ name: string, steps: string[], hangsAt?: string }} */ { name, steps, hangsAt },
) {
  return solo(tutti, name, async (turn) => {
    const results = []
    for (const step of steps)
      results.push(
        await turn.step(step, () => {
          write(`executed ${step}`)
          return step === hangsAt ? forEver() : step
        }),
      )
    return turn.finish(results)
  })
}

/** A step that must not be repeated; what became of it is asked by `caught`. */
export function charge(
  /** @type {any} */ tutti,
  /** @type {(line: string) => void} */ write,
  /** @type {{ hangs?: boolean, caught?: boolean, rethrown?: boolean }} */ { hangs = false, caught = false, rethrown = false },
) {
  const act = async (/** @type {any} */ turn) => {
    const charged = turn.step(
      'charge',
      (/** @type {any} */ ctx) => {
        write(`charged ${ctx.idempotencyKey}`)
        return hangs ? forEver() : 'charged'
      },
      { idempotent: false },
    )
    if (rethrown)
      await charged.catch((/** @type {any} */ error) => {
        write(`caught ${error.name}`)
        throw new Error('no luck')
      })
    if (!caught) return turn.finish(await charged)
    return turn.finish(await charged.catch((/** @type {any} */ error) => `caught ${error.code ?? error.failure?.code ?? error.message}`))
  }
  return solo(tutti, 'charge', act, { retry: { attempts: 3 } })
}

/** A turn that ends its process; with `records`, each time only after something new was recorded. */
export function deadly(
  /** @type {any} */ tutti,
  /** @type {(line: string) => void} */ write,
  /** @type {{ die: () => void, records?: number }} */ { die, records = 0 },
) {
  return solo(tutti, records > 0 ? 'deadly-late' : 'deadly', async (turn) => {
    write('executed body')
    if (records === 0) {
      die()
      return turn.finish('it lives')
    }
    const { attempt } = await turn.step('first', () => ({ attempt: 1 }))
    for (let n = attempt; n < records; n++) {
      let fresh = false
      await turn.step(`record ${n}`, () => {
        fresh = true
      })
      if (fresh) die()
    }
    return turn.finish('it lives')
  })
}

/** Steps of some milliseconds, each an effect of this process; with `hangs`, the first never ends. */
export function orphan(
  /** @type {any} */ tutti,
  /** @type {(line: string) => void} */ write,
  /** @type {{ hangs?: boolean, steps?: number, ms?: number, concurrency?: number }} */ { hangs = false, steps = 3, ms = 2, concurrency },
) {
  const act = async (/** @type {any} */ turn) => {
    for (let n = 0; n < steps; n++)
      await turn.step(`effect-${n}`, async (/** @type {any} */ ctx) => {
        write(`effect ${process.pid} ${ctx.idempotencyKey}`)
        await (hangs ? forEver() : delay(ms))
        return process.pid
      })
    return turn.finish(steps)
  }
  return solo(tutti, 'orphan', act, concurrency === undefined ? {} : { concurrency })
}

/** A fork of three; the last of them may hang. */
export function trio(
  /** @type {any} */ { topology },
  /** @type {(line: string) => void} */ write,
  /** @type {{ hangs?: boolean }} */ { hangs = false },
) {
  return topology({
    name: 'trio',
    flows: ['Start -> H -> End', 'H <-> W'],
    agents: {
      H: (/** @type {any} */ turn) =>
        turn.message.kind === 'join'
          ? turn.finish(turn.message.join.values)
          : turn.fork(['a', 'b', 'c'].map((request) => ({ to: 'W', request }))),
      W: async (/** @type {any} */ turn) => {
        write(`body ${turn.request}`)
        if (turn.request === 'c') await delay(20)
        if (turn.request === 'c' && hangs) {
          write('hangs c')
          await forEver()
        }
        return turn.reply(turn.request)
      },
    },
  })
}

/** By name, for those who are told which. @type {Record<string, any>} */
export const plays = { chains, inOrder, charge, deadly, orphan, trio }
