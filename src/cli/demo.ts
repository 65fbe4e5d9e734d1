import { createInterface, type Interface } from 'node:readline/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TuttiError } from '../define/tutti-error.js'
import type { Run } from '../engine/tutti.js'
import type { Ask } from '../inspect/ask.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { DemoProgress } from './demo-progress.js'
import { type Driven, exitOf, pausedBy, type Session } from './session.js'
import { escaped, type Shown, shown } from './shown.js'
import { storePlace } from '../stores/open-store.js'
import type { Terminal } from './terminal.js'
import { commandOf, program, tell } from './told.js'
import { begin } from './work.js'

interface Options {
  readonly store?: string
  readonly json?: boolean
}

export const command: CliCommand = {
  spec: (command) => command.option(...storeOption).option(...jsonOption),
  run: async (terminal, _, { store, json }: Options) => {
    const file = fileURLToPath(new URL('./demo-workflow.js', import.meta.url))
    const { session, run } = await begin(terminal, {
      type: 'run',
      file,
      input: 'Collect the letters.',
      ...(store !== undefined && { store }),
    })
    const place = storePlace(store)
    terminal.note(
      shown`${escaped('Five agents find a secret word.', 'path')} Their answers are scripted: no model is called, no key is needed.`,
    )
    terminal.note(escaped(`The run ${run.id} is kept in ${place.kind === 'file' ? relative('.', place.path) : 'memory'}.`, 'dim'))
    const driven = await played(terminal, session, run)
    tell(terminal, { id: run.id, store }, driven, json === true)
    if (driven.kind === 'interrupted') await session.letGo()
    else await session[Symbol.asyncDispose]()
    if (driven.kind === 'ended') for (const line of next(store)) terminal.note(line)
    return exitOf(driven)
  },
}

/** Plays it to its end, with the question in between. */
async function played(terminal: Terminal, session: Session, run: Run): Promise<Driven> {
  const following = { tree: session.treeOf(run.id), progress: new DemoProgress(terminal) }
  for (;;) {
    const driven = await session.drive(run, following)
    if (driven.kind !== 'person') return driven
    for (const ask of driven.asks) {
      const word = (ask.kind === 'question' ? (ask.question as { word: string }) : { word: '' }).word
      terminal.note(shown`The letters make ${escaped(word, 'good')}.`)
      const answer = await answered(terminal, session, ask)
      if (answer === 'interrupted' && (await pausedBy(run))) return { kind: 'interrupted' }
      if (typeof answer !== 'boolean') break
      await answerIfOpen(terminal, run, ask, answer)
    }
  }
}

/** What the person at the terminal says; yes where there is nobody, or where nobody says anything. Not asked on when nobody can answer any more: how the run goes on is told. */
async function answered(terminal: Terminal, session: Session, ask: Ask): Promise<boolean | 'interrupted' | 'closed'> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    terminal.note(shown`${escaped('?', 'person')} Shall I tell everybody? Nobody is at a terminal: the demo says yes.`)
    return true
  }
  const enough = new AbortController()
  const closed = session.closed(ask, enough.signal)
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: terminal.isLive })
  try {
    const said = await Promise.race([saidAt(lines), closed])
    if (typeof said === 'boolean' || said === 'interrupted') return said
    terminal.note()
    if (said === 'silent') {
      terminal.note(shown`Nobody answers: the demo says yes.`)
      return true
    }
    terminal.note(shown`nobody needs to answer any more: ${said === 'ended' ? 'the run has ended' : 'somebody else has answered'}`)
    return 'closed'
  } finally {
    lines.close()
    enough.abort()
    await closed.catch(() => null)
  }
}

/** How long the demo waits for a person who watches and says nothing. */
const silentMs = 10_000

function saidAt(lines: Interface): Promise<boolean | 'interrupted' | 'silent'> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve('silent'), silentMs)
    // Whoever has begun to type is waited for.
    process.stdin.once('keypress', () => clearTimeout(timer))
    lines.on('close', () => clearTimeout(timer))
    // A terminal that is drawn on gives the key, any other the signal.
    for (const source of [lines, process]) source.once('SIGINT', () => resolve('interrupted'))
    lines.on('close', () => resolve(true))
    lines.question(`? Shall I tell everybody? [Y/n], yes in ${silentMs / 1_000} s `).then(
      (said) => resolve(!/^\s*n/i.test(said)),
      () => resolve(true),
    )
  })
}

/** Somebody else may have been faster, or the run's time may be over: what became of it is told by the run. */
async function answerIfOpen(terminal: Terminal, run: Run, ask: Ask, answer: boolean): Promise<void> {
  try {
    await run.answer(ask.id, answer, { by: 'tutti demo' })
  } catch (error) {
    if (!TuttiError.is(error) || !['ASK_ALREADY_ANSWERED', 'RUN_ENDED'].includes(error.code)) throw error
    terminal.note(shown`nobody needed to answer any more: ${error.message}`)
  }
}

function next(store: string | undefined): readonly Shown[] {
  const last = { id: '@last', store }
  // What was kept in memory is gone when this is read.
  const look = [
    shown`  ${commandOf('show', last)}    what happened, branch by branch`,
    shown`  ${commandOf('report', last)}  who called whom, and what came of it`,
    shown`  ${commandOf('tail', last)}    every event of its journal`,
  ]
  return [
    [],
    shown`Where to look next:`,
    ...(storePlace(store).kind === 'memory' ? [] : look),
    shown`  ${escaped(`${program()} init`, 'path')}          a project of your own, with a workflow and a test`,
    shown`  ${escaped(`${program()} --help`, 'path')}        everything else`,
  ]
}
