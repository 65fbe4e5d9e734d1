// Ten steps in a row, each of which can be undone, and an eleventh that fails.

export const steps = Array.from({ length: 10 }, (_, at) => `s${at}`)

/**
 * @param {any} tutti
 * @param {(line: string) => void} write
 */
export function rollback({ graph }, write) {
  let built = graph('rollback')
  for (const [at, id] of steps.entries())
    built = built.step(id, {
      after: at === 0 ? [] : [steps[at - 1]],
      run: () => id,
      compensate: (/** @type {any} */ done) => write(`undo ${done.output} ${done.idempotencyKey}`),
    })
  return built
    .step('end', {
      after: [steps.at(-1)],
      run: () => {
        throw new Error('the last one fails')
      },
    })
    .output()
}

/** Starts the run, or goes on with it, to its end. @param {any} engine @param {any} definition */
export async function toTheEnd(engine, definition) {
  const run = await engine.start(definition, { id: 'run', key: 'run' })
  const { status, rollback: rolledBack } = await run.result()
  return { status, rollback: rolledBack }
}
