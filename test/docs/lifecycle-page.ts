import { type AgentCall, agentCalls, lifecycle, type Machine } from '../../src/kernel/lifecycle.js'

const machines: Readonly<Record<Machine, { readonly title: string; readonly about: string }>> = {
  run: {
    title: 'A run',
    about: 'That a run is paused is a flag beside its status: people see `paused` for a run that is running and paused.',
  },
  agentStatus: {
    title: 'An agent: its status',
    about: 'What people, or its breaker, have decided about an agent, for every run and process on the store.',
  },
  agentRuntime: {
    title: 'An agent: its runtime state',
    about: 'What its turns make of that. Both halves are in one record and change in one write.',
  },
  undo: { title: 'One thing that is undone', about: 'Another attempt at an undo stays in `compensating`.' },
  ask: { title: 'A question to a person', about: '`closed`: the branch that asked was cancelled.' },
}

const why: Readonly<Record<AgentCall, string>> = {
  register: 'a process opens the store with a definition that contains it',
  pause: '`agents.pause`',
  resume: '`agents.resume`',
  stop: '`agents.stop`',
  settle: 'its last turn in flight has ended',
  start: '`agents.start`',
  trip: 'its breaker trips, or its probe fails',
  probe: 'one turn is let through to see whether it works again',
  recover: 'that turn did not fail',
  terminate: '`agents.terminate`',
}

/** docs/lifecycle.md, made of the tables. */
export function lifecyclePage(): string {
  const sections = Object.entries(lifecycle).map(([machine, table]) => {
    const { title, about } = machines[machine as Machine]
    return [`## ${title}`, '', about, '', ...picture(table), ''].join('\n')
  })
  return `${[
    '# Lifecycles',
    '',
    'Every machine is a table in `src/kernel/lifecycle.ts`, and this page is made of these tables',
    '(`npx vitest run test/docs/lifecycle.test.ts -u`). Staying where one is changes nothing, not even a revision, and is no arrow.',
    '',
    ...sections,
    '## What each call does to an agent',
    '',
    'Status / runtime state, by way of what; each step must be in both tables, or nothing changes.',
    '',
    '| what happens | if it is | it becomes | asks for what is so |',
    '|---|---|---|---|',
    ...calls(),
  ].join('\n')}\n`
}

function picture(table: Readonly<Record<string, readonly string[]>>): string[] {
  const states = Object.keys(table)
  const arrows = Object.entries(table).flatMap(([from, to]) => to.map((next) => `  ${from} --> ${next}`))
  const last = states.filter((state) => table[state]?.length === 0).map((state) => `  ${state} --> [*]`)
  return ['```mermaid', 'stateDiagram-v2', `  [*] --> ${states[0]}`, ...arrows, ...last, '```']
}

function calls(): string[] {
  return Object.entries(agentCalls).flatMap(([call, { same, rows }]) =>
    rows.map(({ status = ['any'], runtime = ['any'], via }, index) => {
      const first = index === 0
      const from = `${status.join(', ')} / ${runtime.join(', ')}`
      return `| ${first ? why[call as AgentCall] : ''} | ${from} | ${via.join(' → ')} | ${first ? same.join(', ') : ''} |`
    }),
  )
}
