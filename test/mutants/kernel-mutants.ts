import type { Mutant } from './mutant.js'

/** When each slot settled, unseen by whoever compares slots. */
const dated = {
  file: 'kernel/fold-branches.js',
  find: 'barrier.slots = barrier.slots.set(index, slot, state.edit);',
  put: "barrier.slots = barrier.slots.set(index, Object.defineProperty(slot, 'seq', { value: state.seq }), state.edit);",
}

const reachingBut = (standings: string): string =>
  `[...liveIn(draft.state, barrier)].some((one) => ![${standings}].includes(one.standing.status) && (draft.state.reaches.get(barrier.reach)?.from[one.agent] ?? []).includes(index))`

const withLiveIn = {
  file: 'kernel/rendezvous.js',
  find: "import { byId } from './ids.js';",
  put: "import { byId } from './ids.js'; import { liveIn } from './state.js';",
}
const isApproached = '(barrier.approaching[index] ?? 0) > 0'

/** Readings of the rules that read well and are wrong: each makes something depend on an order, or differs from the rules. */
export const topologyMutants: readonly Mutant[] = [
  {
    name: 'contributions in order of arrival',
    cuts: [
      {
        file: 'kernel/fold-branches.js',
        find: '[{ for: event.to, by: branch.agent, branch: branch.id,',
        put: '[{ for: event.to, seq: event.seq, by: branch.agent, branch: branch.id,',
      },
      { file: 'kernel/reported.js', find: 'here: byId(here, (item) => item.branch)', put: 'here: here.sort((a, b) => a.seq - b.seq)' },
    ],
  },
  {
    name: 'limits that fail the branch that crossed them',
    cuts: [
      {
        file: 'kernel/closing.js',
        find: "emit(draft, { type: 'run.closing', cause: 'limit', error });\n    closeAll(draft);",
        put: "const id = draft.turned.findLast((one) => draft.state.branches.get(one) !== undefined);\n    if (id !== undefined) return emit(draft, { type: 'branch.settled', branch: id, status: 'failed', error });\n    emit(draft, { type: 'run.closing', cause: 'limit', error });\n    closeAll(draft);",
      },
      { file: 'kernel/draft.js', find: "case 'branch.opened':\n        case 'turn.started':", put: "case 'turn.started':" },
      { file: 'kernel/draft.js', find: "case 'gate.opened':", put: "case 'branch.opened':\n        case 'gate.opened':" },
      {
        file: 'kernel/consequences.js',
        find: '    checkTurns(draft);\n',
        put: '    for (let seq = -1; seq !== draft.state.seq;) {\n        seq = draft.state.seq;\n        checkTurns(draft);\n        if (seq !== draft.state.seq) {\n            do settleBarriers(draft);\n            while (meet(draft) || decideGates(draft));\n        }\n    }\n',
      },
    ],
  },
  {
    name: 'a merge in order of arrival',
    cuts: [
      {
        file: 'kernel/fold-branches.js',
        find: 'branch.requests = askedBy(branch);\n    branch.agent = event.node;',
        put: "branch.requests = Object.defineProperty(askedBy(branch), 'seq', { value: state.seq });\n    branch.agent = event.node;",
      },
      {
        file: 'kernel/rendezvous.js',
        find: 'branches: group.values() });',
        put: 'branches: group.values().sort((a, b) => branchOf(draft.state, a).requests.seq - branchOf(draft.state, b).requests.seq) });',
      },
    ],
  },
  {
    name: "a run's end that aborts detached branches",
    cuts: [
      {
        file: 'kernel/ending.js',
        find: 'export function decideRun(draft, root) {\n',
        put: "import { closeScope } from './closing.js';\nexport function decideRun(draft, root) {\n    for (const one of [...draft.state.barriers.values()])\n        if (one.kind === 'detached') {\n            closeScope(draft, one.id);\n            emit(draft, { type: 'barrier.closed', barrier: one.id });\n        }\n",
      },
    ],
  },
  {
    name: 'waiting branches that do not hold a rendezvous back',
    cuts: [withLiveIn, { file: 'kernel/rendezvous.js', find: isApproached, put: reachingBut("'held', 'forked', 'asking', 'undoing'") }],
  },
  {
    name: 'losers of a choice that keep their result',
    cuts: [{ file: 'kernel/barrier.js', find: 'if (delivered || byTimeout || !ok)', put: 'if (true)' }],
  },
  {
    name: 'escapes that reach the outer barrier at once',
    cuts: [
      { file: 'kernel/folding.js', find: 'fired: barrier.fired,', put: 'fired: barrier.fired, early: barrier.early,' },
      {
        file: 'kernel/fold-branches.js',
        find: 'settleSlots(state, branch, (first) => settledSlot(branch, event, first));',
        put: "{\n        settleSlots(state, branch, (first) => settledSlot(branch, event, first));\n        if (event.status === 'escaped' && event.to !== undefined) {\n            const outer = changingBarrier(state, event.to);\n            const value = branch.action === null ? undefined : valueOf(branch.action);\n            outer.early = [...(outer.early ?? []), { for: event.to, by: branch.agent, branch: branch.id, ...(value !== undefined && { value }) }];\n        }\n    }",
      },
      {
        file: 'kernel/fold-branches.js',
        find: 'carried: first ? [...branch.carried, ...own] : []',
        put: 'carried: first ? [...branch.carried] : []',
      },
      { file: 'kernel/reported.js', find: 'const here = [];', put: 'const here = [...(barrier.early ?? [])];' },
    ],
  },
  {
    name: 'a quorum at a rendezvous',
    cuts: [{ file: 'kernel/rendezvous.js', find: isApproached, put: `(${isApproached} && group.size < 2)` }],
  },
  {
    name: 'a cause that is the first recorded failure',
    cuts: [
      dated,
      {
        file: 'kernel/reported.js',
        find: "return { index, to, request, status: 'failed', by: settled.by, error: settled.error };",
        put: "return Object.defineProperty({ index, to, request, status: 'failed', by: settled.by, error: settled.error }, 'seq', { value: settled.seq });",
      },
      {
        file: 'kernel/barrier.js',
        find: "slots.find((slot) => slot.status === 'failed')",
        put: "slots.filter((slot) => slot.status === 'failed').sort((a, b) => a.seq - b.seq)[0]",
      },
    ],
  },
  {
    name: 'a reach that stops at other rendezvous',
    cuts: [
      {
        file: 'kernel/reach.js',
        find: 'stack.push(...(next.get(at) ?? []));',
        put: 'if (!joins.includes(at)) stack.push(...(next.get(at) ?? []));',
      },
    ],
  },
  {
    name: 'rendezvous that fire one by one in order of arrival',
    cuts: [
      {
        file: 'kernel/fold-branches.js',
        find: 'branch.standing = held;',
        put: "branch.standing = { status: 'held', seq: state.seq };",
      },
      {
        file: 'kernel/rendezvous.js',
        find: 'for (const group of groups)\n        merge(draft, group);',
        put: 'const since = (group) => Math.min(...group.branches.map((one) => branchOf(draft.state, one).standing.seq));\n    const [first] = groups.sort((a, b) => since(a) - since(b));\n    if (first !== undefined) {\n        merge(draft, first);\n        draft.scopes = [...scopes];\n    }',
      },
    ],
  },
  {
    name: 'failing fast that is not labelled',
    cuts: [
      {
        file: 'kernel/join.js',
        find: "stragglers: given.stragglers ?? (waits ? 'wait' : 'cancel'),",
        put: "stragglers: given.stragglers ?? (given.policy === 'settled' ? 'wait' : 'cancel'),",
      },
      { file: 'kernel/barrier.js', find: "!(policy === 'all' && ok))", put: "policy !== 'all')" },
    ],
  },
  {
    name: 'groups upstream that do not hold back',
    cuts: [{ file: 'kernel/rendezvous.js', find: 'upstream.some(', put: '[].some(' }],
  },
  {
    name: 'a merged branch with another id',
    cuts: [
      { file: 'kernel/rendezvous.js', find: "branchOf(draft.state, branches[0] ?? '')", put: 'branchOf(draft.state, branches.at(-1))' },
      { file: 'kernel/rendezvous.js', find: 'merged: branches.slice(1)', put: 'merged: branches.slice(0, -1).reverse()' },
    ],
  },
  {
    name: '"leads to" on the uncut graph',
    cuts: [
      {
        file: 'kernel/reach.js',
        find: "const reaches = (a, b) => (from[joins[a] ?? ''] ?? []).includes(b);",
        put: "const uncut = waiting.size === 0 ? from : reachOf(nodes, edges, joins, new Set()).from;\n    const reaches = (a, b) => (uncut[joins[a] ?? ''] ?? []).includes(b);",
      },
    ],
  },
  {
    name: 'failing fast by cancelling later slots only',
    cuts: [
      { file: 'kernel/closing.js', find: 'closeScope(draft, barrier) {', put: 'closeScope(draft, barrier, above = -1) {' },
      { file: 'kernel/closing.js', find: 'let scope = closingOf(draft, barrier);', put: 'let scope = closingOf(draft, barrier, above);' },
      { file: 'kernel/closing.js', find: 'closingOf(draft, barrier) {', put: 'closingOf(draft, barrier, above = -1) {' },
      {
        file: 'kernel/closing.js',
        find: '[...liveIn(draft.state, barrierOf(draft.state, barrier))];',
        put: '[...liveIn(draft.state, barrierOf(draft.state, barrier))].filter(({ slot }) => slot > above);',
      },
      {
        file: 'kernel/barrier.js',
        find: '    if (barrier.pending === 0 || early)\n',
        put: "    if (early && delivered < need && barrier.pending > 0) {\n        const lowest = Math.min(...[...barrier.slots.entries()].flatMap(([at, slot]) => (slot.status === 'failed' ? [at] : [])));\n        closeScope(draft, barrier.id, lowest);\n    }\n    else if (barrier.pending === 0 || early)\n",
      },
    ],
  },
  {
    name: 'groups that hold each other back',
    cuts: [{ file: 'kernel/reach.js', find: ' && !reaches(c, d)', put: '' }],
  },
  {
    name: 'states joined in order of arrival',
    cuts: [
      dated,
      {
        file: 'kernel/merging.js',
        find: 'for (const [index, slot] of barrier.slots.entries())',
        put: 'for (const [index, slot] of [...barrier.slots.entries()].sort(([, a], [, b]) => a.seq - b.seq))',
      },
    ],
  },
  {
    name: 'a join in order of arrival',
    cuts: [
      dated,
      {
        file: 'kernel/reported.js',
        find: 'return reported;',
        put: 'return reported.sort((a, b) => (barrier.slots.get(a.index)?.seq ?? 0) - (barrier.slots.get(b.index)?.seq ?? 0));',
      },
    ],
  },
  {
    name: 'a completion of another attempt that is taken',
    cuts: [{ file: 'kernel/decide.js', find: ' || owed.attempt !== speaker.attempt', put: '' }],
  },
  {
    name: 'an identity that is not checked',
    cuts: [
      {
        file: 'kernel/legal.js',
        find: 'const targets = targetsOf(state, branch.agent);',
        put: 'const targets = new Map([...(shapeOf(state).nodes.flatMap((node) => [...targetsOf(state, node)]))]);',
      },
    ],
  },
  {
    name: 'a majority that is a half',
    cuts: [{ file: 'kernel/join.js', find: 'Math.floor(width / 2) + 1', put: 'Math.ceil(width / 2)' }],
  },
  {
    name: 'a retry that is not counted',
    cuts: [{ file: 'kernel/decide.js', find: 'failures >= retry.attempts', put: 'failures > retry.attempts' }],
  },
  {
    name: 'a branch that fails and keeps what it carried',
    cuts: [
      {
        file: 'kernel/reported.js',
        find: "(slot?.status !== 'arrived' && slot?.status !== 'escaped'))",
        put: 'slot?.carried === undefined)',
      },
      {
        file: 'kernel/fold-branches.js',
        find: "return { status: 'failed', branch: branch.id, first, by: branch.agent, error: event.error };",
        put: "return { status: 'failed', branch: branch.id, first, by: branch.agent, error: event.error, carried: first ? branch.carried : [] };",
      },
    ],
  },
  {
    name: 'everybody gone past a fork, and its agent has a turn all the same',
    cuts: [{ file: 'kernel/barrier.js', find: "return { goes: 'escape' };", put: "return { goes: 'turn' };" }],
  },
]

/** Wrong readings of how a run is undone. */
export const undoMutants: readonly Mutant[] = [
  {
    name: 'plans by the clock',
    cuts: [
      { file: 'kernel/fold-undo.js', find: 'Object.freeze({ ...fresh, status:', put: 'Object.freeze({ ...fresh, seq: state.seq, status:' },
      {
        file: 'kernel/undo-order.js',
        find: 'return new Map(nodes.map(({ id, after }) => [id, after]));',
        put: 'const all = nodes.filter(({ entry }) => entry !== null).sort((a, b) => a.entry.seq - b.entry.seq);\n    return new Map(all.map(({ id }, at) => [id, at === 0 ? [] : [all[at - 1].id]]));',
      },
    ],
  },
  {
    name: 'plans that are no choice',
    cuts: [{ file: 'kernel/compensation.js', find: '...(chosen.length > 0 && {', put: '...(false && {' }],
  },
  {
    name: 'a branch that is undoing does not hold a rendezvous back',
    cuts: [withLiveIn, { file: 'kernel/rendezvous.js', find: isApproached, put: reachingBut("'held', 'undoing'") }],
  },
  {
    name: 'plans that do not wait for aborting attempts',
    cuts: [{ file: 'kernel/compensation.js', find: 'if (undo !== undefined && here(undo.path))', put: 'if (false)' }],
  },
  {
    name: 'plans that do not wait for plans under them',
    cuts: [{ file: 'kernel/compensation.js', find: 'if (here(path))', put: 'if (false)' }],
  },
  {
    name: 'a plan that takes what another has taken',
    cuts: [
      {
        file: 'kernel/compensation.js',
        find: "if (entry?.status === 'done')",
        put: "if (entry !== null && entry.status !== 'pending' && entry.status !== 'compensating')",
      },
    ],
  },
  {
    name: 'a fork that undoes what counts',
    cuts: [
      { file: 'kernel/compensation.js', find: "plan.onward?.all === true || status === 'failed' || status === 'cancelled'", put: 'true' },
    ],
  },
  {
    name: 'a run that ends before it is undone',
    cuts: [{ file: 'kernel/ending.js', find: 'aborting.size > 0 || undo.plans.size > 0)', put: 'aborting.size > 0)' }],
  },
  {
    name: 'a meeting that forgets where its survivor came from',
    cuts: [{ file: 'kernel/fold-undo.js', find: 'own !== undefined && !others.includes(branch)', put: 'own !== undefined' }],
  },
  {
    name: 'a rollback that counts what nobody is told of',
    cuts: [{ file: 'kernel/compensation.js', find: 'barrier === rootBarrier || !readsCancelled(state, path)', put: 'true' }],
  },
  {
    name: 'an undo that is given up too early',
    cuts: [{ file: 'kernel/compensation.js', find: 'attempts: 5', put: 'attempts: 4' }],
  },
  {
    name: 'a rejected turn that counts as done',
    cuts: [
      {
        file: 'kernel/fold-turns.js',
        find: 'turnDone(state, branch, event.action);',
        put: 'turnDone(state, branch, event.action); if (event.action.type === "fail") turnDone(state, branch, { type: "finish" });',
      },
    ],
  },
]

/** Wrong readings of graphs. */
export const graphMutants: readonly Mutant[] = [
  {
    name: 'the error of the first failure in time',
    cuts: [
      dated,
      {
        file: 'kernel/ending.js',
        find: "slots.flatMap((slot) => (slot?.status === 'failed' ? [slot.error] : []))",
        put: "slots.filter((slot) => slot?.status === 'failed').sort((a, b) => a.seq - b.seq).map((slot) => slot.error)",
      },
    ],
  },
  {
    name: 'the cause of a skip by time',
    cuts: [
      dated,
      {
        file: 'kernel/gate.js',
        find: "cause: settledAs(draft, step, 'not')[0] ?? ''",
        put: "cause: settledAs(draft, step, 'not').sort((a, b) => barrierOf(draft.state, rootBarrier).slots.get(draft.state.run.places[a]).seq - barrierOf(draft.state, rootBarrier).slots.get(draft.state.run.places[b]).seq)[0] ?? ''",
      },
    ],
  },
  {
    name: '`all` that skips early',
    cuts: [
      {
        file: 'kernel/gate.js',
        find: 'if (gate.pending > 0)',
        put: "if (gate.pending > 0 && !(step.join.policy === 'all' && settledAs(draft, step, 'not').length > 0))",
      },
    ],
  },
  {
    name: '`each` that stops at a failure',
    cuts: [
      {
        file: 'kernel/barrier.js',
        find: "const early = barrier.join.stragglers === 'cancel' && (",
        put: "const early = (barrier.each !== null && barrier.failed > 0) || barrier.join.stragglers === 'cancel' && (",
      },
    ],
  },
  {
    name: 'nothing starts after a failure',
    cuts: [
      {
        file: 'kernel/gate.js',
        find: "    const choice = step.join.policy !== 'all' && step.join.policy !== 'settled';\n",
        put: "    const choice = step.join.policy !== 'all' && step.join.policy !== 'settled';\n    if (barrierOf(draft.state, rootBarrier).failed > 0) {\n        emit(draft, { type: 'step.skipped', branch, step: step.id, cause: 'when' });\n        return true;\n    }\n",
      },
    ],
  },
  {
    name: 'inputs read at the start instead of at the gate',
    cuts: [
      {
        file: 'kernel/fold-turns.js',
        find: '    branch.standing = started;\n',
        put: "    branch.standing = started;\n    if (branch.message.kind === 'step' && branch.message.item === undefined && state.run.shape.kind === 'graph') {\n        const { slots } = state.barriers.get('#');\n        const step = state.run.shape.steps[state.run.places[branch.agent]];\n        branch.message = { kind: 'step', sees: [...step.after].sort((a, b) => state.run.places[a] - state.run.places[b]).filter((one) => slots.get(state.run.places[one])?.status === 'arrived') };\n    }\n",
      },
    ],
  },
  { name: 'gates that are no choices', cuts: [{ file: 'kernel/gate.js', find: '...(choice && { decidedBy: sees })', put: '' }] },
  {
    name: 'items in order of completion',
    cuts: [
      dated,
      {
        file: 'kernel/gate.js',
        find: 'for (const [index, slot] of barrier.slots.entries())',
        put: 'for (const [index, slot] of [...barrier.slots.entries()].sort(([, a], [, b]) => a.seq - b.seq))',
      },
    ],
  },
]
