import type { Command } from '../kernel/command.js'
import { jsonSize } from '../kernel/json.js'
import { takenSize } from './taken-action.js'

/** Above so many commands, or bytes of what they say, that are not durable yet, nothing new begins. */
const commandsMax = 4_000
const bytesMax = 16 * 1024 * 1024

/** What is left of a command without its values. */
const bareBytes = 100

/** About how much of memory a command keeps until it is durable. */
export function weightOf(command: Command): number {
  switch (command.type) {
    case 'activity.complete':
      return bareBytes + jsonSize(command.value)
    case 'turn.complete':
      return bareBytes + (takenSize(command.action) ?? jsonSize(command.action))
    case 'step.complete':
      return bareBytes + jsonSize(command.output)
    case 'step.each':
      return bareBytes + jsonSize(command.items)
    case 'run.start':
      return bareBytes + jsonSize(command.input)
    case 'ask.answer':
      return bareBytes + jsonSize(command.value)
    default:
      return bareBytes
  }
}

/**
 * What was said and is not durable yet. What has happened is never refused; but while there is too much of it no run is started and no
 * effect begins, so that a store that is slow, or out of reach, holds up the work and not the memory.
 */
export class Backlog {
  #commands = 0
  #bytes = 0
  readonly #waiting: (() => void)[] = []
  #closed = false

  get isEmpty(): boolean {
    return this.#commands === 0
  }

  get isFull(): boolean {
    return (this.#commands > commandsMax || this.#bytes > bytesMax) && !this.#closed
  }

  add(bytes: number): void {
    this.#commands++
    this.#bytes += bytes
  }

  remove(bytes: number): void {
    this.#commands--
    this.#bytes -= bytes
  }

  /** Resolves when there is room for whoever comes first: others may have taken it by then, so ask again. */
  room(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Some of it has become durable: as many go on as could have room. */
  relieve(): void {
    if (this.#waiting.length > 0 && !this.isFull) for (const go of this.#waiting.splice(0, 1 + commandsMax - this.#commands)) go()
  }

  /** Nobody waits any more. */
  close(): void {
    this.#closed = true
    for (const go of this.#waiting.splice(0)) go()
  }
}
