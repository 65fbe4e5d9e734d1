import type { Ask } from '../inspect/ask.js'
import type { RunRow } from '../engine/store.js'
import type { RolledBack } from '../kernel/event.js'
import { storePlace } from '../stores/open-store.js'
import { answerForm } from './answer-form.js'
import { failure, notUndone, questionOf } from './event-line.js'
import { originOf } from './origin.js'
import type { Driven } from './session.js'
import { drawn, escaped, type Shown, shown, text } from './shown.js'
import { jsonText, type Terminal } from './terminal.js'

/** How a run is named in the commands that are proposed. */
export interface Named {
  readonly id: string
  readonly store?: string | undefined
}

/** Tells what became of a run: its output to those who read data, the rest, with what to do next, to the person. */
export function tell(terminal: Terminal, run: Named, driven: Driven, json: boolean): void {
  if (json) terminal.json(jsonOf(run.id, driven))
  if (driven.kind !== 'ended' && storePlace(run.store).kind === 'memory') return tellLost(terminal, run, driven)
  switch (driven.kind) {
    case 'ended': {
      const { outcome } = driven
      const left = notUndone(driven.rolled)
      if (outcome.status === 'succeeded') {
        if (!json) terminal.data(typeof outcome.output === 'string' ? text(outcome.output) : drawn(jsonText(outcome.output)))
        if (driven.rolled.notUndone !== undefined) terminal.note(shown`the run ${run.id} succeeded${left}`)
      } else if (outcome.status === 'failed') terminal.note(shown`the run ${run.id} failed: ${failure(outcome.error)}${left}`)
      else terminal.note(shown`the run ${run.id} was cancelled${outcome.reason === null ? '' : `: ${outcome.reason}`}${left}`)
      return
    }
    case 'paused':
      for (const id of driven.runs) terminal.note(pausedLine({ ...run, id }))
      return
    case 'person':
      for (const ask of driven.asks) terminal.note(askLine(ask, run.store))
      return
    case 'agent':
      return terminal.note(
        shown`the run ${run.id} waits for ${driven.agents.join(', ')}, who may not act now; see ${commandOf('agents', { store: run.store })}, then go on with: ${commandOf('resume', run)}`,
      )
    case 'interrupted':
      terminal.note(shown`paused ${run.id}; go on with: ${commandOf('resume', run)}`)
  }
}

/** What has not ended in memory ends with this process: there is nothing to go on with, and nothing is proposed. */
function tellLost(terminal: Terminal, run: Named, driven: Exclude<Driven, { kind: 'ended' }>): void {
  if (driven.kind === 'person') for (const ask of driven.asks) terminal.note(asked(ask))
  const state = {
    person: 'waits for a person',
    agent: `waits for ${driven.kind === 'agent' ? driven.agents.join(', ') : ''}, who may not act now`,
    paused: 'is paused',
    interrupted: 'is paused',
  }[driven.kind]
  terminal.note(
    shown`the run ${run.id} ${state}, and is lost: the store 'memory:' ends with this process; kept in a file it could be gone on with`,
  )
}

function jsonOf(id: string, driven: Driven): object {
  switch (driven.kind) {
    case 'ended':
      return { id, ...driven.outcome, ...undoingOf(driven) }
    case 'paused':
      return driven.runs.includes(id) ? { id, status: 'paused' } : { id, status: 'running', paused: driven.runs }
    case 'interrupted':
      return { id, status: 'paused' }
    case 'person':
      return { id, status: 'running', waitsFor: ['person'], asks: driven.asks }
    case 'agent':
      return { id, status: 'running', waitsFor: ['agent'], agents: driven.agents }
  }
}

/** What is said of undoing as data: of a run that succeeded only if there was something to undo, as in its journal. */
function undoingOf({ outcome, rolled }: Extract<Driven, { kind: 'ended' }>): Partial<RolledBack> {
  return outcome.status === 'succeeded' && rolled.rollback === 'none' ? {} : rolled
}

/** What somebody is asked, and how to answer; when the time for that is over, how to go on without. */
export function askLine(ask: Ask, store: string | undefined): Shown {
  if (ask.expiresAt !== undefined && ask.expiresAt <= Date.now())
    return shown`${asked(ask)}\nits time is over; go on with: ${commandOf('resume', { id: ask.runId, store })}`
  const answer = commandOf('answer', { id: ask.runId, store }, ask.id, quoted(`<${answerForm(ask)}>`))
  return shown`${asked(ask)}\nanswer it with: ${answer}`
}

/** Nothing of it is left out: who answers, and who approves a call above all, must have read it. */
function asked(ask: Ask): Shown {
  return shown`${escaped('?', 'person')} ${ask.agent} asks ${questionOf(ask, Infinity)}`
}

/** What is said of a run that stands still until somebody resumes it. */
export function pausedLine(run: Named): Shown {
  return shown`the run ${run.id} is paused; go on with: ${commandOf('resume', run)}`
}

/** What is said of a run that has something to do and nobody who does it, and how to go on with it. */
export function nobodyExecutes({ id, tags }: { readonly id: string; readonly tags: RunRow['tags'] }, store: string | undefined): Shown {
  const file = originOf(tags) === null ? ['--file', '<file>'] : []
  return shown`nobody executes ${id}, its process has gone; go on with: ${commandOf('resume', { id, store }, ...file)}`
}

/** A command that a person can type. */
export function commandOf(command: string, { id, store }: Partial<Named>, ...args: readonly string[]): Shown {
  const options = store === undefined ? [] : ['--store', quoted(store)]
  const named = id === undefined ? args : [quoted(id), ...args]
  // What begins as an option does is taken for one, unless it is said where these end.
  const rest = id?.startsWith('-') === true ? [...options, '--', ...named] : [...named, ...options]
  return escaped([program(), command, ...rest].join(' '), 'path')
}

/** What a person types to call this: through npm if that is how it was called, because it may not be found otherwise. */
export function program(): string {
  return process.env['npm_command'] === undefined ? 'tutti' : 'npx tutti'
}

/** A word as a shell takes it. */
export function quoted(word: string): string {
  return /^[\w./:@~+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
