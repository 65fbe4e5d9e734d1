import { eventLine } from './event-line.js'
import { LiveTree } from './live-tree.js'
import type { RunTree, Seen } from './run-tree.js'
import { cut } from './shown.js'
import type { Terminal } from './terminal.js'

/** Tells a person how a run goes. */
export interface Progress {
  /** What had happened before anybody was there to be told. */
  past(seen: readonly Seen[]): void
  take(seen: readonly Seen[], tree: RunTree): void
  /** Leaves what it has drawn as it is. */
  end(): void
}

/** A tree that is drawn over on a terminal, one line per event in a pipe. */
export function progressOn(terminal: Terminal): Progress {
  return terminal.isLive ? new TreeProgress(terminal) : lineProgress(terminal)
}

function lineProgress(terminal: Terminal): Progress {
  return {
    past: () => {},
    take: (seen, tree) => {
      for (const { run, event } of seen)
        terminal.note(eventLine(event, tree.state().run?.startedAt ?? event.at, run === tree.id ? undefined : run))
    },
    end: () => {},
  }
}

/** How often the tree is drawn at most: a person sees no more. */
const everyMs = 80

class TreeProgress implements Progress {
  readonly #terminal: Terminal
  readonly #model = new LiveTree()
  #timer: NodeJS.Timeout | null = null
  #tree: RunTree | null = null

  constructor(terminal: Terminal) {
    this.#terminal = terminal
  }

  past(seen: readonly Seen[]): void {
    for (const one of seen) this.#model.take(one)
  }

  take(seen: readonly Seen[], tree: RunTree): void {
    this.past(seen)
    this.#tree = tree
    // Drawn once more after the last change, also while nothing happens: the clock in it goes on.
    if (this.#timer !== null) return
    this.#timer = setInterval(() => this.#draw(), everyMs)
    this.#draw()
  }

  end(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#draw()
    this.#terminal.settle()
    this.#tree = null
  }

  #draw(): void {
    if (this.#tree === null) return
    this.#terminal.draw(this.#model.lines(this.#tree, this.#terminal.rows - 2).map((line) => cut(line, this.#terminal.columns - 1)))
  }
}
