import type { ActivityContext, Done, StepContext, Turn, Work } from 'tutti'

type Members<T, Without = never> = { readonly [K in Exclude<keyof T, keyof Without> & string]: readonly [how: string, about: string] }
type StepOptions = NonNullable<Parameters<Work['step']>[2]>

const activity: Members<ActivityContext> = {
  signal: ['signal', 'aborted when the work is told to stop; hand it on to `fetch` and the like'],
  idempotencyKey: ['idempotencyKey', 'the same on every attempt; hand it on to whoever must recognise a repeated effect'],
  attempt: ['attempt', 'from 1'],
  use: ['use(resource)', 'a live value of this process, given to `open({ resources })`; never recorded'],
  emit: ['emit(data)', 'tells those who listen with `events({ deltas: true })`; never recorded'],
}

const work: Members<Work, ActivityContext> = {
  runId: ['runId', 'the run'],
  branchId: ['branchId', 'the branch'],
  tags: ['tags', 'what the run was started with'],
  step: [
    'await step(name, run, options?)',
    'does something and records its result, which must be JSON and is given as a frozen copy; what is recorded is not executed again',
  ],
  sleep: ['await sleep(ms)', 'durable: the time runs on while no process does'],
  now: ['now()', 'the time of what was last delivered, in milliseconds; the same on re-execution'],
  random: ['random()', 'at least 0 and below 1, seeded by run, branch and turn; the same on re-execution'],
}

const stepOptions: Members<StepOptions> = {
  key: ['key', 'finds the record; without it, the name and a number'],
  idempotent: [
    'idempotent: false',
    'never executed again while it may have been done: if nobody knows what came of it, it fails with `ACTIVITY_OUTCOME_UNKNOWN`. One that threw is known to have failed, and a retry of the turn may repeat it',
  ],
  retry: ['retry', '`{ attempts, backoffMs, factor, maxBackoffMs, if }`; `attempts` counts the first one'],
  timeoutMs: ['timeoutMs', 'per attempt'],
}

const turn: Members<Turn, Work> = {
  agent: ['agent', 'the name of the agent whose turn it is'],
  turn: ['turn', 'the number of the turn on this branch, from 1'],
  message: ['message', 'why the turn happens, by its `kind`: `request`, `merged`, `join`, `answer`, `expired` or `feedback`'],
  request: ['request', 'what the agent was asked; the same in join, answer and feedback turns'],
  requests: ['requests', 'the same as a list of `{ from, value, state }`; more than one where branches have met'],
  state: ['state', 'what the branch carries'],
  waiting: ['waiting', "the agent that waits for this branch's reply; null if nobody does"],
  memory: ['memory', 'what the agent remembers from before, as its option `memory` says: `{ role, content }`'],
  targets: ['targets', 'where the edges of the agent lead'],
  invoke: ['invoke(to, request?, { state }?)', 'hands the branch over; nobody waits'],
  fork: [
    'fork(calls, { request, join, compensate, state }?)',
    'asks several at once and waits for their replies; the next turn is a `join`',
  ],
  reply: ['reply(value, { state }?)', 'to whoever waits; needs the edge, as `invoke` does'],
  finish: ['finish(output?)', 'ends the run; needs an edge to `End`'],
  ask: [
    'ask(question, { timeoutMs, schema, state }?)',
    'asks a person; needs an edge to `User`; the next turn is an `answer`, or `expired`',
  ],
  fail: ['fail(error)', 'the branch fails'],
}

const step: Members<StepContext<unknown, unknown, unknown>, Work> = {
  input: ['input', 'the input of the run'],
  steps: ['steps', 'the outputs of the steps named in `after`'],
  item: ['item', 'with `each`: the item'],
  index: ['index', 'with `each`: its place'],
}

const done: Members<Done, ActivityContext> = {
  output: ['output', 'what it gave'],
  input: ['input', 'what it was given'],
  item: ['item', 'with `each`: the item'],
  activities: ['activities', 'what was recorded of its steps, by their keys'],
}

const table = (members: Readonly<Record<string, readonly [string, string]>>): string[] => [
  '| member | what it is |',
  '|---|---|',
  ...Object.values(members).map(([how, about]) => `| \`${how}\` | ${about} |`),
]

/** docs/turn.md, made of what is said above. */
export function turnPage(): string {
  return `${[
    '# What code is given',
    '',
    'Members are bound: `({ step, now }) => …` works. The page is made in `test/docs/turn-page.ts`, which the compiler holds to the types.',
    '',
    '## Everywhere: `ActivityContext`',
    '',
    'Given to the code of a `step`, to tools and to what undoes.',
    '',
    ...table(activity),
    '',
    '## Turns and the steps of graphs: `Work`',
    '',
    'All of the above, and:',
    '',
    ...table(work),
    '',
    'The options of `step`:',
    '',
    ...table(stepOptions),
    '',
    'A helper that several agents or steps use takes a `Work`: every turn and every step is one. A `Turn` is that of one agent in its topology, and',
    'no other.',
    '',
    '## A turn: `Turn`',
    '',
    'All of the above, and:',
    '',
    ...table(turn),
    '',
    '## A step of a graph: `StepContext`',
    '',
    'A `Work`, and:',
    '',
    ...table(step),
    '',
    '## What undoes: `Done`',
    '',
    'An `ActivityContext`, and:',
    '',
    ...table(done),
  ].join('\n')}\n`
}
