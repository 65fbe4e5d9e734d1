import type { Colour } from '../inspect/theme.js'
import type { Event } from '../kernel/event.js'
import { compareIds } from '../kernel/ids.js'
import { actionText, failure, questionOf } from './event-line.js'
import type { RunTree, Seen } from './run-tree.js'
import { escaped, type Shown, shown, value } from './shown.js'

type Mark = 'ready' | 'runs' | 'waits' | 'asks' | 'done' | 'failed' | 'gone' | 'retries'

const signs: Readonly<Record<Mark, { readonly sign: string; readonly colour: Colour }>> = {
  ready: { sign: '·', colour: 'dim' },
  runs: { sign: '▶', colour: 'turn' },
  waits: { sign: '◇', colour: 'wait' },
  asks: { sign: '?', colour: 'person' },
  done: { sign: '✓', colour: 'good' },
  failed: { sign: '✗', colour: 'bad' },
  gone: { sign: '–', colour: 'dim' },
  retries: { sign: '↻', colour: 'retry' },
}

/** What is known of one branch, or step, for drawing. */
interface Line {
  readonly id: string
  readonly run: string
  readonly depth: number
  agent: string
  mark: Mark
  said: Shown
  /** The fork that it waits at. */
  barrier: string | null
}

/** What a person sees of a run while it goes on: its branches as a tree, each with what it did last. */
export class LiveTree {
  readonly #lines = new Map<string, Line>()

  take({ run, event }: Seen): void {
    if (event.type === 'branch.opened') return this.#opened(run, event)
    const branch = 'branch' in event && event.branch !== undefined ? this.#lines.get(`${run} ${event.branch}`) : undefined
    if (branch !== undefined) change(branch, event)
  }

  #opened(run: string, { branch, parent, to }: Extract<Event, { type: 'branch.opened' }>): void {
    const above = parent === null ? undefined : this.#lines.get(`${run} ${parent}`)
    const depth = above === undefined ? run.split(':').length - 1 : above.depth + 1
    this.#lines.set(`${run} ${branch}`, { id: branch, run, depth, agent: to, mark: 'ready', said: [], barrier: null })
  }

  /** The tree in at most so many lines: what goes on is shown before what is over. */
  lines(tree: RunTree, max: number): Shown[] {
    const { run, status, startedAt, pausedAt } = { ...tree.state(), startedAt: tree.state().run?.startedAt ?? Date.now() }
    const now = tree.stop()?.kind === 'ended' ? tree.state().at : Date.now()
    const word = pausedAt !== null && tree.stop()?.kind !== 'ended' ? 'paused' : tree.isBeingCancelled() ? 'cancelling' : status
    const head = shown`${escaped(run?.shape.name ?? '', 'path')} ${escaped(tree.id, 'dim')} ${word} ${((now - startedAt) / 1000).toFixed(1)}s`
    const all = [...this.#lines.values()]
    const room = Math.max(1, max - 2)
    const chosen = (all.length <= room ? all : chosenOf(all, room)).sort(inTree)
    const left = all.length - chosen.length
    const more = left === 0 ? [] : [escaped(`  … ${left} more`, 'dim')]
    return [head, ...chosen.map((line) => lineOf(line, tree)), ...more]
  }
}

function chosenOf(all: readonly Line[], room: number): Line[] {
  const isOver = ({ mark }: Line): boolean => mark === 'done' || mark === 'gone'
  return [...all.filter((line) => !isOver(line)), ...all.filter(isOver)].slice(0, room)
}

function inTree(a: Line, b: Line): number {
  if (a.run !== b.run) return a.run < b.run ? -1 : 1
  return compareIds(a.id, b.id)
}

function lineOf({ id, run, depth, agent, mark, said, barrier }: Line, tree: RunTree): Shown {
  const { sign, colour } = signs[mark]
  const open = barrier === null ? undefined : tree.state(run).barriers.get(barrier)
  const count = open === undefined ? shown`` : shown` ${open.calls.length - open.pending}/${open.calls.length}`
  return shown`  ${'  '.repeat(depth)}${escaped(sign, colour)} ${agent} ${escaped(id, 'dim')} ${said}${count}`
}

function change(line: Line, event: Event): void {
  switch (event.type) {
    case 'branch.moved':
      line.agent = event.to
      line.mark = 'ready'
      return
    case 'turn.started':
      line.mark = 'runs'
      line.barrier = null
      return
    case 'turn.completed':
      line.said = actionText(event.action)
      return
    case 'turn.rejected':
      line.mark = event.final ? 'failed' : 'retries'
      line.said = escaped(event.problem)
      return
    case 'turn.failed':
      line.mark = event.final ? 'failed' : 'retries'
      line.said = failure(event.error)
      return
    case 'barrier.opened':
      line.mark = 'waits'
      line.barrier = event.barrier
      return
    case 'branch.held':
      line.mark = 'waits'
      line.said = shown`waits at ${event.node}`
      return
    case 'ask.opened':
      line.mark = 'asks'
      line.said = questionOf(event.ask)
      return
    case 'ask.answered':
      line.mark = 'ready'
      line.said = shown`was answered ${value(event.value, 60)}`
      return
    case 'step.completed':
      line.mark = 'done'
      line.said = value(event.output, 100)
      return
    case 'step.skipped':
      line.mark = 'gone'
      line.said = shown`skipped: ${event.cause}`
      return
    case 'branch.settled':
      line.mark = event.status === 'arrived' ? 'done' : event.status === 'failed' ? 'failed' : 'gone'
      return
    default:
  }
}
