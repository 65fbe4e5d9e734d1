import type { Mutant } from './mutant.js'

/** A bug in the engine or in a store, with the part of the suite that is there to see it. */
export interface EngineMutant extends Mutant {
  readonly suite: readonly string[]
}

export const engineMutants: readonly EngineMutant[] = [
  {
    name: 'a fence that is dropped',
    cuts: [
      {
        file: 'engine/loop.js',
        find: 'const may = !(owned && entry.owner === null) && ',
        put: 'const may = ',
      },
    ],
    suite: ['test/durable/owners.test.ts', 'test/engine', 'test/scenarios'],
  },
  {
    name: 'an epoch that is forgotten',
    cuts: [
      {
        file: 'stores/sqlite-commit.js',
        find: 'if (item.owner !== undefined && (known.worker !== item.owner.worker || known.epoch !== item.owner.epoch))',
        put: 'if (false)',
      },
    ],
    suite: ['test/durable/guards.test.ts'],
  },
  {
    name: 'a refusal that is answered from a stale state',
    cuts: [
      {
        file: 'engine/lookout.js',
        find: 'return entry.stale || entry.reading !== null || (entry.owner === null && entry.state !== newState);',
        put: 'return entry.stale;',
      },
    ],
    suite: ['test/durable/resumes.test.ts', 'test/durable/steering.test.ts'],
  },
  {
    name: 'a timer that fires twice',
    cuts: [
      {
        file: 'kernel/fold-turns.js',
        find: "if (before?.status === 'sleeping')",
        put: 'if (false)',
      },
    ],
    suite: ['test/engine/sleeps.test.ts', 'test/engine/steps.test.ts'],
  },
  {
    name: 'a timer that fires early',
    cuts: [
      {
        file: 'engine/engine.js',
        find: 'this.#alarms.at(timer.due + entry.state.pausedMs, ring)',
        put: 'this.#alarms.at(timer.due - 1 + entry.state.pausedMs, ring)',
      },
    ],
    suite: ['test/engine/sleeps.test.ts', 'test/engine/steering.test.ts', 'test/engine/retries.test.ts'],
  },
  {
    name: 'a wake-up that is lost',
    cuts: [{ file: 'engine/lookout.js', find: '            return;\n        this.look();\n', put: '            return;\n' }],
    suite: ['test/durable/steering.test.ts', 'test/durable/resumes.test.ts', 'test/durable/owners.test.ts'],
  },
  {
    name: 'an acknowledgement before the commit',
    cuts: [
      {
        file: 'engine/loop.js',
        find: 'this.#port.store.commit(items)',
        put: '(setTimeout(() => void this.#port.store.commit(items), 20), Promise.resolve(items.map(() => ({ ok: true, epoch: 1 }))))',
      },
    ],
    suite: ['test/durable/kill.test.ts', 'test/engine/keys.test.ts'],
  },
  {
    name: 'a snapshot that is one event late',
    cuts: [{ file: 'engine/loop.js', find: 'encodeSnapshot(state)', put: '{ ...encodeSnapshot(entry.state), seq: state.seq }' }],
    suite: ['test/engine/snapshots.test.ts'],
  },
  {
    name: 'records that are not given back',
    cuts: [{ file: 'engine/activities.js', find: 'const records = work?.records.values() ?? [];', put: 'const records = [];' }],
    suite: ['test/durable/steps.test.ts', 'test/durable/kill.test.ts'],
  },
  {
    name: 'an idempotency key that is forgotten',
    cuts: [{ file: 'engine/keyed.js', find: 'act(keyPut(key, of))', put: 'act(undefined)' }],
    suite: ['test/engine/keys.test.ts'],
  },
  {
    name: 'a conflict whose commands are dropped',
    cuts: [{ file: 'engine/loop.js', find: 'this.#again(entry, again);', put: 'this.#again(entry, []);' }],
    suite: ['test/durable/resumes.test.ts', 'test/durable/steering.test.ts'],
  },
  {
    name: 'a pause that lets timers run',
    cuts: [{ file: 'kernel/evolve.js', find: 'state.pausedMs += state.at - state.pausedAt;', put: '' }],
    suite: ['test/engine/sleeps.test.ts'],
  },
  {
    name: 'reports that list what was done under cancelled slots',
    cuts: [
      {
        file: 'inspect/report.js',
        find: "    if (status === 'cancelled')\n        return { id: branch.id, agents: [], turns: 0, status };\n",
        put: '',
      },
    ],
    suite: ['test/engine/reports.test.ts'],
  },
  {
    name: "attempts' timeouts that are no choices",
    cuts: [{ file: 'inspect/graph-report.js', find: 'if (event.timedOut)', put: 'if (false)' }],
    suite: ['test/graph/engine.test.ts'],
  },
  {
    name: 'turns that are stopped and are no choices',
    cuts: [{ file: 'inspect/report.js', find: 'if (stopped !== undefined)', put: 'if (false)' }],
    suite: ['test/agents/stopped-choices.test.ts'],
  },
  {
    name: 'what a turn had begun under a worker that is gone, forgotten',
    cuts: [
      { file: 'kernel/decide.js', find: 'const unsettled = isLeftUnknown(draft.state, branch, failed);', put: 'const unsettled = false;' },
    ],
    suite: ['test/undo/taken-over.test.ts'],
  },
]
