// A run with all that can be interrupted: parallel steps, a fork of ten, a retry, a sleep, a question. It is built from the parts it is
// given, so that the test and its children, over the source and over what was built, execute the same.

export const width = 10
export const output = {
  prepared: ['a', 'b', 'c'],
  values: Array.from({ length: width }, (_, slot) => slot * 10),
  answer: 'yes',
  published: 'published yes',
}

/**
 * `write` makes an effect: a line that stays.
 *
 * @param {any} tutti
 * @param {(line: string) => void} write
 */
export function house({ topology }, write) {
  /** @param {any} turn */
  const begun = (turn) => write(`turn ${turn.branchId}/${turn.turn}/${turn.attempt}`)
  /** @param {any} turn @param {string} name @param {unknown} value */
  const effect = (turn, name, value) =>
    turn.step(name, (/** @type {any} */ ctx) => {
      write(`step ${ctx.idempotencyKey}`)
      return value
    })
  return topology({
    name: 'house',
    flows: ['Start -> Lead -> End', 'Lead <-> Worker', 'Lead -> User'],
    state: () => ({ prepared: [], values: [] }),
    merge: { prepared: 'mine', values: 'mine' },
    agents: {
      Lead: async (/** @type {any} */ turn) => {
        begun(turn)
        const { message, state } = turn
        switch (message.kind) {
          case 'request': {
            const prepared = await Promise.all(['a', 'b', 'c'].map((name) => effect(turn, name, name)))
            const calls = Array.from({ length: width }, (_, slot) => ({ to: 'Worker', request: slot }))
            return turn.fork(calls, { state: { ...state, prepared } })
          }
          case 'join':
            await turn.sleep(20)
            return turn.ask('publish?', { state: { ...state, values: message.join.values } })
          default: {
            const published = await effect(turn, 'publish', `published ${message.value}`)
            return turn.finish({ ...state, answer: message.value, published })
          }
        }
      },
      Worker: {
        retry: { attempts: 3, backoffMs: 2 },
        act: async (/** @type {any} */ turn) => {
          begun(turn)
          const value = await effect(turn, 'work', turn.request * 10)
          if (turn.request === 3 && turn.attempt === 1) throw new Error('the first attempt fails')
          return turn.reply(value)
        },
      },
    },
  })
}

/**
 * Starts the run, or finds it, and answers its question until it is over; `write` says what was acknowledged.
 *
 * @param {any} engine
 * @param {any} definition
 * @param {(line: string) => void} write
 */
export async function toTheEnd(engine, definition, write) {
  const run = await engine.start(definition, { id: 'run', key: 'start' })
  write('ack start')
  for await (const event of run.events()) {
    if (event.type !== 'ask.opened') continue
    await run.answer(event.ask.id, 'yes', { key: 'answer' })
    write('ack answer')
  }
  return run.result()
}
