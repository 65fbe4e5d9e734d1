// One agent that asks once, with an effect before its question and one after the answer.

/**
 * @param {any} tutti
 * @param {(line: string) => void} write
 */
export function counted({ topology }, write, /** @type {object} */ rest = {}) {
  /** @param {any} turn @param {string} name */
  const effect = (turn, name) =>
    turn.step(name, (/** @type {any} */ ctx) => {
      write(`${name} ${ctx.idempotencyKey}`)
    })
  return topology({
    name: 'counted',
    flows: ['Start -> A -> End', 'A -> User'],
    agents: {
      A: async (/** @type {any} */ turn) => {
        if (turn.message.kind === 'request') {
          await effect(turn, 'before')
          return turn.ask('go?')
        }
        await effect(turn, 'after')
        return turn.finish(turn.message.value)
      },
    },
    ...rest,
  })
}
