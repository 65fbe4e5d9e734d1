import { createInterface } from 'node:readline/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Run } from '../engine/tutti.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, storeOption } from './cli-command.js'
import { DemoProgress } from './demo-progress.js'
import { RunTree } from './run-tree.js'
import { type Driven, exitOf, Session } from './session.js'
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
  const following = { tree: new RunTree(session.store, run.id), progress: new DemoProgress(terminal) }
  for (;;) {
    const driven = await session.drive(run, following)
    if (driven.kind !== 'person') return driven
    for (const ask of driven.asks) {
      const word = (ask.kind === 'question' ? (ask.question as { word: string }) : { word: '' }).word
      terminal.note(shown`The letters make ${escaped(word, 'good')}.`)
      const answer = await answered(terminal)
      if (answer === null) {
        await run.pause({ by: 'Ctrl-C' })
        return { kind: 'interrupted' }
      }
      await run.answer(ask.id, answer, { by: 'tutti demo' })
    }
  }
}

/** What the person at the terminal says; yes where there is nobody; null if they interrupt. */
async function answered(terminal: Terminal): Promise<boolean | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    terminal.note(shown`${escaped('?', 'person')} Shall I tell everybody? Nobody is at a terminal: the demo says yes.`)
    return true
  }
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: terminal.isLive })
  try {
    return await new Promise<boolean | null>((resolve) => {
      // A terminal that is drawn on gives the key, any other the signal.
      for (const source of [lines, process]) source.once('SIGINT', () => resolve(null))
      lines.on('close', () => resolve(true))
      lines.question('? Shall I tell everybody? [Y/n] ').then(
        (said) => resolve(!/^\s*n/i.test(said)),
        () => resolve(true),
      )
    })
  } finally {
    lines.close()
  }
}

function next(store: string | undefined): readonly Shown[] {
  const last = { id: '@last', store }
  return [
    [],
    shown`Where to look next:`,
    shown`  ${commandOf('show', last)}    what happened, branch by branch`,
    shown`  ${commandOf('report', last)}  who called whom, and what came of it`,
    shown`  ${commandOf('tail', last)}    every event of its journal`,
    shown`  ${escaped(`${program()} init`, 'path')}          a project of your own, with a workflow and a test`,
    shown`  ${escaped(`${program()} --help`, 'path')}        everything else`,
  ]
}
