/** On why a turn is over, and on who passes over it, with how many engines that are open. Known to every copy of this code in a process. */
const isOver = Symbol.for('tutti.turn-over')
const engines = Symbol.for('tutti.turn-over.engines')

/** Why a turn is over: what its steps that are open, and all that its code has made of them, are rejected with. */
export function turnOver<T extends Error>(reason: T): T {
  return Object.defineProperty(reason, isOver, { value: true })
}

interface Listener {
  (reason: unknown): void
  [engines]: number
}

const event = 'unhandledRejection'

/**
 * Code that still waits for something when its turn is over, and is itself waited for by nobody, must not end the process, with every run in it:
 * that it was told so is no fault of its own. Of all else Node makes what it makes where nobody listens. Until the function that is given back is
 * called.
 */
export function passOverTurnsOver(): () => void {
  const listener = process.listeners(event).find(isOurs) ?? listening()
  listener[engines]++
  let isOpen = true
  return () => {
    if (!isOpen) return
    isOpen = false
    if (--listener[engines] === 0) process.off(event, listener)
  }
}

const isOurs = (listener: object): listener is Listener => engines in listener

function listening(): Listener {
  const listener: Listener = Object.assign(
    (reason: unknown): void => {
      if (typeof reason === 'object' && reason !== null && isOver in reason) return
      if (process.listeners(event).some((other) => !isOurs(other))) return
      process.off(event, listener)
      void Promise.reject(reason)
      // Where the process goes on after that, so do we.
      setImmediate(() => listener[engines] > 0 && process.prependListener(event, listener))
    },
    { [engines]: 0 },
  )
  // Before all others: who listens once has gone when the next one is told.
  process.prependListener(event, listener)
  return listener
}
