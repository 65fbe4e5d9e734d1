import type { Delta, Events, JournalEvent } from 'tutti'

type KeysOf<T> = T extends unknown ? keyof T : never

/** An event and its fields, each with what it says: the compiler holds it to the types. */
type Described<T> = { readonly about: string } & { readonly fields: { readonly [K in KeysOf<T> & string]: string } }

const ofTurn = { agent: 'whose turn it is; in a graph, the step', turn: 'its number on this branch, from 1', attempt: 'from 1' }
const late = 'which attempts of it ran out of time, if any did'
const ofActivity = { ...ofTurn, key: 'which one of its turn', name: 'as the code has named it' }
const failure = 'the failure, with its `code`'
const rollback = 'how much was undone: `none`, `complete` or `partial`'

const events: { readonly [T in keyof Events]: Described<Events[T]> } = {
  'run.started': {
    about: 'The first event.',
    fields: { runId: 'its id', definition: 'the name of what runs', version: 'of that', input: 'what it was given', tags: 'its tags' },
  },
  'run.claimed': { about: 'A worker has taken the run.', fields: { epoch: 'grows with every worker; the last one alone may write' } },
  'run.released': { about: 'Its worker has given it back.', fields: {} },
  'run.paused': { about: 'Nothing new starts.', fields: { by: 'who asked for it' } },
  'run.resumed': { about: 'It goes on.', fields: { by: 'who asked for it' } },
  'run.closing': {
    about: 'All that is live is being closed: the run was cancelled, or has crossed a limit.',
    fields: { cause: '`cancel` or `limit`', reason: 'of a cancel', by: 'who cancelled', error: 'of a limit: the failure' },
  },
  'run.compensating': { about: 'Nothing runs any more; what was done is being undone.', fields: { cause: 'the failure that led to it' } },
  'run.succeeded': { about: 'It has succeeded. This or one of the next two is the last event.', fields: { output: 'what came of it' } },
  'run.failed': { about: 'It has failed.', fields: { error: failure, rollback } },
  'run.cancelled': { about: 'It was cancelled.', fields: { reason: 'as given to `cancel`', rollback } },
  'branch.opened': {
    about: 'A branch begins.',
    fields: {
      parent: 'the branch that forked or notified; null at the root',
      to: 'the agent, or the step, where it begins',
      barrier: 'where it is waited for',
      slot: 'its place there',
      gated: 'it waits for other steps, or for an item before it',
    },
  },
  'branch.settled': {
    about: 'A branch is over.',
    fields: { status: '`arrived`, `failed`, `escaped` or `cancelled`', error: 'why it failed' },
  },
  'branch.moved': { about: 'A branch was handed over with `invoke`.', fields: { to: 'the agent that has it now' } },
  'branch.held': { about: 'A branch waits at a node of `joins` for others of its fork.', fields: { node: 'where' } },
  'rendezvous.fired': {
    about: 'Branches have met and go on as one: `branch`.',
    fields: { barrier: 'their fork', node: 'where they met', merged: 'the branches' },
  },
  'gate.opened': {
    about: 'A step may run.',
    fields: { sees: 'the steps whose outputs it sees', decidedBy: 'given where the order has decided: by which steps' },
  },
  'turn.started': { about: 'An attempt at a turn begins.', fields: { ...ofTurn, message: 'why the turn happens' } },
  'turn.completed': { about: 'A turn is done.', fields: { ...ofTurn, action: 'what it returned' } },
  'turn.rejected': {
    about: 'What a turn returned is not allowed.',
    fields: { ...ofTurn, problem: 'what is wrong with it', final: 'true: the branch fails; else the agent is told and has another turn' },
  },
  'turn.failed': {
    about: 'An attempt has failed.',
    fields: {
      ...ofTurn,
      error: failure,
      retryAt: 'when the next attempt begins',
      final: 'true: there is none',
      timedOut: 'it took longer than `timeoutMs`',
      stopped: 'it was not begun, because its agent was `stopped`, `terminated` or, by its breaker, `failed`',
    },
  },
  'turn.aborted': {
    about: 'An attempt that was told to stop is over.',
    fields: { ...ofTurn, how: '`ended` by itself, or `fenced` off when its time was up' },
  },
  'sleep.started': { about: 'A durable sleep begins.', fields: { ...ofActivity, ms: 'how long' } },
  'activity.completed': {
    about: 'A `step`, a call of a model or of a tool has a result, or a sleep is over.',
    fields: { ...ofActivity, value: 'the result', timeouts: late },
  },
  'activity.failed': {
    about: 'A `step`, a call of a model or of a tool has failed.',
    fields: { ...ofActivity, error: failure, timeouts: late },
  },
  'barrier.opened': {
    about: 'Somebody begins to wait for branches: the run for its first, a fork for its calls, nobody for what is notified.',
    fields: { barrier: 'its id', kind: '`root`, `fork` or `detached`', width: 'how many are waited for', join: 'how' },
  },
  'barrier.arrived': { about: 'A slot has its result.', fields: { barrier: 'where', slot: 'which', by: 'the agent that delivered it' } },
  'barrier.fired': {
    about: 'The wait is over.',
    fields: {
      barrier: 'which',
      ok: 'whether the join was met',
      width: 'how many were waited for',
      arrived: 'how many have delivered',
      failed: 'how many have failed',
      escaped: 'how many went elsewhere',
      cancelled: 'how many were told to stop',
      decidedBy: 'given where the order has decided: the slots that count',
      byTimeout: 'the time of the join was up',
      goes: 'what becomes of the branch that waits: `turn`, `escape`, `fail`, `ask` or `step`',
    },
  },
  'barrier.released': { about: 'A person has said how to go on with a join that was not met.', fields: { barrier: 'which' } },
  'ask.opened': { about: 'A person is asked.', fields: { ask: 'the question, as `run.asks()` has it' } },
  'ask.answered': { about: 'A person has answered.', fields: { askId: 'which', value: 'the answer', by: 'who' } },
  'ask.expired': { about: 'Nobody has answered in time.', fields: { askId: 'which' } },
  'step.completed': {
    about: 'A step of a graph, or one of its items, is done.',
    fields: { step: 'its id', item: 'the index of the item', output: 'what it gave' },
  },
  'step.skipped': {
    about: 'A step, or one of its items, is left out.',
    fields: {
      step: 'its id',
      item: 'the index of the item',
      cause: '`when`, the step before it that was not done, or what its own failure said',
    },
  },
  'undo.planned': {
    about: 'What is to be undone, last first.',
    fields: {
      barrier: 'of which fork; `#` is the whole run',
      entries: 'what is undone',
      unknown: 'what nobody knows the outcome of: it is left',
      decidedBy: 'given where the order has decided',
    },
  },
  'undo.started': { about: 'An attempt to undo something begins.', fields: { of: 'what', attempt: 'from 1' } },
  'undo.completed': { about: 'It is undone.', fields: { of: 'what', attempt: 'from 1' } },
  'undo.failed': {
    about: 'The attempt has failed.',
    fields: { of: 'what', attempt: 'from 1', error: failure, final: 'true: it stays as it is', retryAt: 'when the next attempt begins' },
  },
}

const ofAll: { readonly [K in 'seq' | 'at' | 'branch' | 'type']: K extends keyof JournalEvent ? string : never } = {
  seq: 'its number in the journal, which only grows; go on after one with `events({ after: seq })`',
  at: 'when it was recorded, in milliseconds',
  branch: 'the branch it is about, if it is about one',
  type: 'which of the events below it is',
}

const deltas: { readonly [T in Delta['type']]: Described<Extract<Delta, { type: T }>> } = {
  'text.delta': {
    about: 'A model speaks.',
    fields: {
      type: '',
      branch: 'on which branch',
      agent: 'who',
      after: 'the `seq` of the last event before it',
      text: 'the next part of what it says',
      attempt:
        'how often the model was called for this answer: with a new one, what was heard of the last is void. It begins again where a turn is tried again: `turn.failed` voids what was heard since its last activity',
    },
  },
  emit: {
    about: 'Code has called `emit(data)`.',
    fields: { type: '', branch: 'on which branch', agent: 'who', after: 'the `seq` of the last event before it', data: 'what it gave' },
  },
}

function table(
  described: Readonly<Record<string, { readonly about: string; readonly fields: Readonly<Record<string, string>> }>>,
): string[] {
  const rows = Object.entries(described).map(([type, { about, fields }]) => {
    const told = Object.entries(fields).filter(([, says]) => says !== '')
    return `| \`${type}\` | ${about} | ${told.map(([name, says]) => `\`${name}\`: ${says}`).join('; ')} |`
  })
  return ['| type | what happened | fields |', '|---|---|---|', ...rows]
}

/** docs/events.md, made of what is said above. */
export function eventsPage(): string {
  return `${[
    '# Events',
    '',
    'What `run.events()` gives, and `tutti export --jsonl` writes. The page is made in `test/docs/events-page.ts`, which the compiler holds to the types',
    '`Events` and `Delta`.',
    '',
    'A journal also has events, and events have fields, that are not listed here: they are how a run goes on after a restart, and may change.',
    'Leave out what you do not know.',
    '',
    '## Every event',
    '',
    ...Object.entries(ofAll).map(([name, says]) => `- \`${name}\`: ${says}.`),
    '',
    '## The journal',
    '',
    ...table(events),
    '',
    '## In between',
    '',
    '`run.events({ deltas: true })` also gives what is never recorded and never told again: parts of what models say, and what code gives to',
    '`emit`. Only who listens in the process that runs it hears it, and who is slow misses the oldest; what has not been read when the run ends, or is',
    'cancelled, is not told any more. What must not be missed stands in the journal.',
    '',
    ...table(deltas),
  ].join('\n')}\n`
}
