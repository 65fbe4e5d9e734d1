import type { Event } from '../kernel/event.js'
import { actionText } from './event-line.js'
import { type Progress, progressOn } from './progress.js'
import type { RunTree, Seen } from './run-tree.js'
import { escaped, type Shown, shown, value } from './shown.js'
import type { Terminal } from './terminal.js'

/** Tells the demo as a story; on a terminal, with the tree of its branches below. */
export class DemoProgress implements Progress {
  readonly #terminal: Terminal
  readonly #tree: Progress | null
  #arrived = 0

  constructor(terminal: Terminal) {
    this.#terminal = terminal
    this.#tree = terminal.isLive ? progressOn(terminal) : null
  }

  past(seen: readonly Seen[]): void {
    this.#tree?.past(seen)
  }

  take(seen: readonly Seen[], tree: RunTree): void {
    for (const { event } of seen) {
      const line = this.#told(event)
      const seconds = (event.at - (tree.state().run?.startedAt ?? event.at)) / 1_000
      if (line !== null) this.#terminal.note(shown`${escaped(`${seconds.toFixed(1).padStart(5)} s`, 'dim')}  ${line}`)
    }
    this.#tree?.take(seen, tree)
  }

  end(): void {
    this.#tree?.end()
  }

  #told(event: Event): Shown | null {
    switch (event.type) {
      case 'barrier.opened':
        return event.kind === 'fork' ? shown`the fork opens: ${event.width} branches run, and a barrier waits for them` : null
      case 'turn.completed':
        return event.action.type === 'finish' ? null : shown`${escaped(event.agent, 'turn')} ${actionText(event.action)}`
      case 'barrier.arrived':
        return event.branch === undefined || event.barrier === '#'
          ? null
          : shown`the barrier counts ${escaped(`${++this.#arrived}/3`, 'good')}`
      case 'barrier.fired':
        return event.barrier === '#' ? null : shown`the letters are read in the order of the fork, whoever came first`
      case 'ask.answered':
        return shown`a person answers ${value(event.value)}`
      default:
        return null
    }
  }
}
