import { ActivityLog } from './activity-log.js'
import { Branches } from './branches.js'
import type { JoinData } from './join.js'
import { recounted } from './recount.js'
import { valuesOf } from './reported.js'
import { SlotMap } from './slot-map.js'
import type { ActivityRecord, Barrier, Branch, SettledSlot, State } from './state.js'
import { newState } from './state.js'
import { Trie } from './trie.js'
import { TurnQueue } from './turn-queue.js'
import { type Placed, ReadyUndos } from './ready-undos.js'
import type { Plan, Undo, Waiting } from './undo-state.js'

/** Raised when a state is written differently; a snapshot of another format is not read: the journal is. */
export const snapshotVersion = '10'

type Entries<V> = readonly (readonly [string, V])[]
type SavedBarrier = Omit<Barrier, 'slots' | 'reach' | 'approaching' | 'groups'> & {
  readonly slots: readonly (readonly [number, SettledSlot])[]
}

const tries = ['branches', 'asks', 'closedAsks', 'timers', 'aborting', 'asleep', 'crashes', 'gates'] as const

/** A state as JSON. What the rendezvous count follows from the rest and is left out. */
export function saveState(state: State): unknown {
  const { barriers, reaches: _, edit: __, work, undo, ...rest } = state
  const saved: Record<string, unknown> = {
    ...rest,
    run: rest.run === null ? null : { ...rest.run, targets: null, places: null, dependents: null },
  }
  for (const key of tries) saved[key] = state[key].entries()
  saved['queue'] = { waiting: state.queue.entries(), tail: state.queue.tail }
  saved['barriers'] = [...barriers.values()].map(({ slots, reach: ___, approaching: ____, groups: _____, ...barrier }) => ({
    ...barrier,
    slots: [...slots.entries()],
  }))
  saved['work'] = [...work.entries()].map(([branch, { records, earlier, count }]) => [
    branch,
    { records: records.values(), earlier: [...earlier.entries()], count },
  ])
  saved['undo'] = saveUndo(undo)
  return saved
}

const undoTries = ['nodes', 'frontier', 'running', 'decided', 'left', 'undone', 'origins'] as const

function saveUndo(undo: Undo): unknown {
  const saved: Record<string, unknown> = {}
  for (const key of undoTries) saved[key] = [...undo[key].entries()]
  saved['ready'] = undo.ready.all()
  saved['forks'] = undo.forks.entries().map(([barrier, under]) => [barrier, under.keys()])
  saved['plans'] = [...undo.plans.values()].map((plan) =>
    plan.status === 'running' ? { ...plan, waits: [...plan.waits.entries()] } : plan,
  )
  return saved
}

type SavedPlan = Omit<Plan, 'waits'> & { readonly waits?: Entries<Waiting> }

function loadUndo(saved: Record<string, unknown>): Undo {
  const loaded: Record<string, unknown> = {}
  for (const key of undoTries) loaded[key] = Trie.from(saved[key] as Entries<never>)
  const plans = (saved['plans'] as readonly SavedPlan[]).map((plan) =>
    plan.waits === undefined ? (plan as Plan) : ({ ...plan, waits: Trie.from(plan.waits) } as Plan),
  )
  loaded['ready'] = (saved['ready'] as readonly Placed[]).reduce((ready, one) => ready.with(one), ReadyUndos.none)
  const forks = saved['forks'] as Entries<readonly string[]>
  loaded['forks'] = Trie.from(forks.map(([barrier, under]) => [barrier, Trie.from(under.map((id) => [id, true] as const))] as const))
  loaded['plans'] = Trie.from(plans.map((plan) => [plan.barrier, plan] as const))
  return loaded as unknown as Undo
}

/** The state that was saved: it equals the fold of the journal before it. */
export function loadState(json: unknown): State {
  const saved = json as Record<string, unknown>
  const loaded: Record<string, unknown> = { ...newState, ...saved }
  for (const key of tries) loaded[key] = Trie.from(saved[key] as Entries<never>)
  const { waiting, tail } = saved['queue'] as { readonly waiting: readonly (readonly [number, string])[]; readonly tail: number }
  loaded['queue'] = TurnQueue.from(waiting, tail)
  loaded['branches'] = Branches.from((saved['branches'] as Entries<Branch>).map(([id, branch]) => [id, loadBranch(branch)] as const))
  loaded['barriers'] = Trie.from(
    (saved['barriers'] as readonly SavedBarrier[]).map((barrier) => [barrier.id, loadBarrier(barrier)] as const),
  )
  loaded['work'] = Trie.from(
    (saved['work'] as Entries<{ records: readonly ActivityRecord[]; earlier: Entries<never>; count: number }>).map(
      ([branch, { records, earlier, count }]) => [branch, { records: ActivityLog.from(records), earlier: Trie.from(earlier), count }],
    ),
  )
  loaded['undo'] = loadUndo(saved['undo'] as Record<string, unknown>)
  return recounted(loaded as unknown as State)
}

function loadBranch(branch: Branch): Branch {
  const { message } = branch
  if (message.kind !== 'join') return { ...branch, state: branch.state }
  return {
    ...branch,
    state: branch.state,
    message: { kind: 'join', join: { ...message.join, values: valuesOf(message.join.slots) as JoinData['values'] } },
  }
}

function loadBarrier({ slots, ...barrier }: SavedBarrier): Barrier {
  return {
    ...barrier,
    base: barrier.base,
    slots: SlotMap.from(slots),
    reach: '',
    approaching: [],
    groups: [],
  }
}
