// Runs a definition in front of your eyes: what each agent does as it does it, then the run as a picture. Every example ends with it.
import { pathToFileURL } from 'node:url'
import { type Action, type Ask, type Definition, type JournalEvent, open, type OpenOptions, timelineOf, timelineText } from 'tutti'

export interface Play extends Pick<OpenOptions, 'resources' | 'models'> {
  readonly input?: unknown
  /** What the person says when a run asks one. */
  readonly answer?: (ask: Ask) => unknown
}

/** Whether this file is the one that was started, and not one that another imports. */
export const isMain = (url: string): boolean => url === pathToFileURL(process.argv[1] ?? '').href

export async function play(definition: Definition, { input, answer, ...options }: Play): Promise<void> {
  const tutti = await open({ store: 'memory:', ...options })
  try {
    const run = await tutti.start(definition as Definition<unknown>, { input })
    const events: JournalEvent[] = []
    for await (const event of run.events()) {
      events.push(event)
      const line = told(event)
      if (line !== undefined) console.log(line)
      if (event.type === 'ask.opened') await run.answer(event.ask.id, answer?.(event.ask), { by: 'you' })
    }
    console.log(`\n${timelineText(timelineOf(events), { width: Math.min(process.stdout.columns ?? 100, 140) })}`)
    const result = await run.result()
    if (result.status === 'succeeded') console.log(`→ ${shown(result.output)}`)
    else console.log(`→ ${result.status}${result.status === 'failed' ? `: ${result.error.message}` : ''}, rollback: ${result.rollback}`)
  } finally {
    await tutti.close()
  }
}

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function told(event: JournalEvent): string | undefined {
  switch (event.type) {
    case 'turn.completed':
      return `${event.agent.padEnd(14)}${done(event.action)}`
    case 'turn.rejected':
      return `${event.agent.padEnd(14)}is refused: ${event.problem}`
    case 'turn.failed':
      return `${event.agent.padEnd(14)}fails: ${event.error.message}${event.final ? '' : ' (and tries again)'}`
    case 'barrier.fired':
      return event.barrier === '#'
        ? undefined
        : `${''.padEnd(14)}${event.arrived} of ${event.width} have answered${event.cancelled > 0 ? '; the others are told to stop' : ''}`
    case 'step.completed':
      return `${event.step.padEnd(14)}${event.item === undefined ? '' : `[${event.item}] `}gives ${shown(event.output)}`
    case 'step.skipped':
      return `${event.step.padEnd(14)}is skipped: ${event.cause}`
    case 'ask.opened':
      return `${event.ask.agent.padEnd(14)}asks you: ${asked(event.ask)}`
    case 'ask.answered':
      return `${'you'.padEnd(14)}answer ${shown(event.value)}`
    case 'undo.completed':
      return `${'undo'.padEnd(14)}${event.of} is undone`
    case 'undo.failed':
      return `${'undo'.padEnd(14)}${event.of} ${event.final ? 'could not be undone' : 'is tried again'}: ${event.error.message}`
    default:
      return undefined
  }
}

function asked(ask: Ask): string {
  switch (ask.kind) {
    case 'question':
      return shown(ask.question)
    case 'approval':
      return `may I ${ask.tool} ${shown(ask.input)}?`
    case 'join':
      return 'go on with what there is?'
  }
}

function done(action: Action): string {
  switch (action.type) {
    case 'fork':
      return `asks ${action.calls.map(({ to }) => to).join(', ')}`
    case 'invoke':
      return `hands ${action.request === undefined ? '' : `${shown(action.request)} `}over to ${action.to}`
    case 'reply':
      return `replies ${shown(action.value)}`
    case 'finish':
      return 'finishes'
    case 'ask':
      return 'has a question'
    case 'fail':
      return `gives up: ${action.error.message}`
  }
}
