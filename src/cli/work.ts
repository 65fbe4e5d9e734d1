import { type Definition, internalsOf } from '../define/definition.js'
import { TuttiError } from '../define/tutti-error.js'
import type { RunRow, Store } from '../engine/store.js'
import type { Run } from '../engine/tutti.js'
import { openAsks } from './asks.js'
import { type Cassette, withCassette } from './cassette.js'
import { CliError, notFound, wrongUse } from './cli-error.js'
import { exitCode } from './exit-code.js'
import { findRun, isTop, topOf } from './find-run.js'
import { isFree } from './is-stranded.js'
import { journalOf } from './journal.js'
import { type Loaded, loadFile } from './load-file.js'
import { originOf, tagsOf } from './origin.js'
import { progressOn } from './progress.js'
import { RunTree } from './run-tree.js'
import { type Following, Session } from './session.js'
import { openExisting, openOrMake } from './stores.js'
import type { Terminal } from './terminal.js'
import { whichModel } from './which-model.js'

/** What a process is asked to do with a run, as plain data: a child process can be given it. */
export type Work = Cassette & { readonly store?: string } & (
    | { readonly type: 'run'; readonly file: string; readonly input?: unknown; readonly id?: string }
    | { readonly type: 'resume'; readonly run: string; readonly file?: string }
    | { readonly type: 'answer'; readonly run: string; readonly ask: string; readonly value: unknown; readonly file?: string }
  )

/** What was begun: acknowledged, hence durable. */
export interface Begun {
  readonly session: Session
  readonly run: Run
  readonly following: Following
  /** Whether this process has the code to go on with it. */
  readonly executes: boolean
}

/** Does what is asked, and gives the run to go on with. */
export async function begin(terminal: Terminal, work: Work): Promise<Begun> {
  return work.type === 'run' ? started(terminal, work) : wentOn(terminal, work)
}

async function started(terminal: Terminal, work: Extract<Work, { type: 'run' }>): Promise<Begun> {
  const file = await loadFile({ file: work.file, export: 'default' })
  const { loaded, close } = await withCassette(file, work)
  const model = work.replay === undefined ? whichModel(file) : null
  if (model !== null) terminal.note(model)
  const session = await Session.open(terminal, await openOrMake(work.store), loaded, close)
  return orClosed(session, async () => {
    const run = await session.tutti.start(loaded.definition, {
      input: work.input as never,
      id: work.id,
      tags: tagsOf(loaded.origin),
    })
    session.about(run)
    return { session, run, following: { tree: session.treeOf(run.id), progress: progressOn(terminal) }, executes: true }
  })
}

async function wentOn(terminal: Terminal, work: Exclude<Work, { type: 'run' }>): Promise<Begun> {
  const store = await openExisting(work.store)
  const row = await findRun(store, work.run)
  const found = await loadedFor(row, work.file)
  if (work.type === 'resume') await mayResume(store, row)
  const { loaded, close } = found === null ? { loaded: null, close: undefined } : await withCassette(found, work)
  const session = await Session.open(terminal, store, loaded, close)
  return orClosed(session, async () => {
    const run = await session.tutti.run(row.id)
    if (loaded !== null) await checkVersion(run, row, loaded)
    const top = await session.tutti.run(await whoGoesOn(store, row, loaded))
    const following = await session.follow(top.id)
    if (work.type === 'answer') await run.answer(await askIn(store, row, work.ask), work.value, { by: 'tutti answer' })
    else if (row.status === 'paused') await run.resume({ by: 'tutti resume' })
    session.about(top)
    return { session, run: top, following, executes: loaded !== null }
  })
}

/** The question that is meant: its id, or who asks, if that is one question. Of who asks nothing now, what became of the last is told. */
async function askIn(store: Store, { id }: RunRow, given: string): Promise<string> {
  const asks = (await openAsks(store, id)).filter(({ runId }) => runId === id)
  if (asks.some((ask) => ask.id === given)) return given
  const [only, ...others] = asks.filter(({ agent }) => agent === given)
  if (only === undefined) return (await lastOf(store, id, given)) ?? given
  if (others.length === 0) return only.id
  throw wrongUse(`${given} asks ${others.length + 1} questions`, 'name the id of one: tutti asks lists them')
}

async function lastOf(store: Store, id: string, asker: string): Promise<string | undefined> {
  const asked = (await journalOf(store, id)).flatMap((event) =>
    event.type === 'ask.opened' && event.ask.agent === asker ? event.ask.id : [],
  )
  return asked.at(-1)
}

/** What is answered or resumed for a child run is awaited by the run that was started, which has nobody else to go on with it. */
async function whoGoesOn(store: Store, row: RunRow, loaded: Loaded | null): Promise<string> {
  if (isTop(row) || loaded === null) return row.id
  const top = await findRun(store, topOf(row))
  return takes(loaded.definition, top) ? top.id : row.id
}

async function orClosed(session: Session, work: () => Promise<Begun>): Promise<Begun> {
  try {
    return await work()
  } catch (error) {
    // Who is refused is told so soon: whatever its worker has taken meanwhile is taken over from it.
    await session.letGo()
    throw error
  }
}

/** The code that goes on with a run: what is said, else what it was started from. */
export async function loadedFor(row: RunRow, file: string | undefined): Promise<Loaded | null> {
  const origin = file === undefined ? originOf(row.tags) : { file, export: 'default' }
  if (origin === null) return null
  try {
    return await loadFile(origin)
  } catch (error) {
    if (file !== undefined || !(error instanceof CliError) || error.exit !== exitCode.notFound) throw error
    throw notFound(`the file that the run ${row.id} was started from is gone: ${origin.file}`, 'name where it is now with --file')
  }
}

/** A run that nobody has, because its process died, is gone on with; one that is not paused is somebody else's. */
async function mayResume(store: Store, row: RunRow): Promise<void> {
  if (row.status === 'paused') return
  if (row.endedAt !== null)
    throw new TuttiError('RUN_ENDED', `the run ${row.id} has ended: it ${row.status === 'cancelled' ? 'was cancelled' : row.status}`)
  if (await isFree(store, row.id)) return
  throw new TuttiError('RUN_NOT_PAUSED', `the run ${row.id} is not paused: ${await whyNot(store, row)}`)
}

/** What it waits for instead, itself or in a child run. */
async function whyNot(store: Store, { id }: RunRow): Promise<string> {
  const tree = new RunTree(store, id)
  await tree.catchUp()
  const stop = tree.stop()
  switch (stop?.kind) {
    case 'person':
      return 'it waits for a person: tutti asks lists the questions'
    case 'agent':
      return 'it waits for an agent that may not act now: see tutti agents'
    case 'paused':
      return `it waits for ${stop.runs.join(', ')}: resume that`
    default:
      return 'somebody else may have resumed it'
  }
}

async function checkVersion(run: Run, row: RunRow, { definition, origin }: Loaded): Promise<void> {
  if (!(await run.summary()).waitsFor.includes('definition') || takes(definition, row)) return
  throw new TuttiError(
    'DEFINITION_NOT_FOUND',
    `the run ${row.id} is of ${row.definition}, version ${row.version}; ${origin.file} has ${definition.name}, version ${definition.version}`,
    { hint: 'take the file back to that version, or let the new one say that it continues it' },
  )
}

/** Whether it says that it goes on with a run like this; that it can't all the same is found out on the way. */
function takes(definition: Definition, { definition: name, version }: RunRow): boolean {
  return definition.name === name && [definition.version, ...internalsOf(definition).continues].includes(version)
}
