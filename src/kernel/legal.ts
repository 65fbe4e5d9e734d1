import type { Action, Fork } from './action.js'
import { joinProblem, joinSpec } from './join.js'
import type { MessageKind } from './message.js'
import type { Branch, State } from './state.js'
import { shapeOf, targetsOf, waitingAgent } from './state.js'

/** Why an action is not allowed, judged by the agent of the branch that acted and by its own edges; null if it is (KERNEL §2). */
export function illegal(state: State, branch: Branch, action: Action): string | null {
  // A step returns a value, not an action; what asks is the definition itself.
  if (shapeOf(state).kind === 'graph') return null
  const targets = targetsOf(state, branch.agent)
  const problem = whatIsWrong(state, branch, action, targets)
  if (problem === null) return null
  return `${branch.agent} (branch ${branch.id}) ${problem}. ${allowed(branch.agent, [...targets.keys()])}`
}

/** A reply is an invoke of whoever waits; over a notify edge it is told apart by nothing but its name, and so is written as what it is. */
export function spelledOut(state: State, branch: Branch, action: Action): Action {
  const waiting = action.type === 'reply' ? waitingAgent(state, branch) : null
  if (action.type !== 'reply' || waiting === null) return action
  if (!targetsOf(state, branch.agent).get(waiting)) return action
  const { value, state: next } = action
  return Object.freeze({
    type: 'invoke',
    to: waiting,
    ...(value !== undefined && { request: value }),
    ...(next !== undefined && { state: next }),
  })
}

function allowed(agent: string, targets: readonly string[]): string {
  const agents = targets.filter((to) => to !== 'End' && to !== 'User')
  const may = [
    ...(agents.length > 0 ? [`invoke ${agents.join(', ')}`] : []),
    ...(targets.includes('End') ? ['finish'] : []),
    ...(targets.includes('User') ? ['ask a person'] : []),
    'fail',
  ]
  return `${agent} may ${may.join('; ')}`
}

function whatIsWrong(state: State, branch: Branch, action: Action, targets: ReadonlyMap<string, boolean>): string | null {
  switch (action.type) {
    case 'invoke':
      if (!hasEdge(targets, action.to)) return `may not invoke ${whyNot(targets, action.to)}`
      if (targets.get(action.to) && !takes(state, branch, 'join')) return `has no handler 'join' to go on with after notifying ${action.to}`
      return unknownKey(state, action.state)
    case 'reply': {
      const waiting = waitingAgent(state, branch)
      if (waiting === null) return 'may not reply: nobody waits for this branch (`invoke` hands over, only `fork` waits for replies)'
      if (!hasEdge(targets, waiting)) return `may not reply to ${waiting}: there is no edge to it`
      if (targets.get(waiting) && !takes(state, branch, 'join')) return `has no handler 'join' to go on with after notifying ${waiting}`
      return unknownKey(state, action.state)
    }
    case 'fork':
      return wrongFork(state, branch, action, targets)
    case 'finish':
      return targets.has('End') ? null : 'may not finish: there is no edge to End'
    case 'ask':
      // What a person must approve is the definition's to say, not the agent's.
      if (!targets.has('User') && action.approval === undefined) return 'may not ask: there is no edge to User'
      if (!takes(state, branch, 'answer')) return "has no handler 'answer' to take what it asks for"
      if (action.timeoutMs !== undefined && !(Number.isFinite(action.timeoutMs) && action.timeoutMs >= 0))
        return `may not ask with a timeout of ${action.timeoutMs}: it must be a number of milliseconds`
      return unknownKey(state, action.state)
    case 'fail':
      return null
  }
}

function wrongFork(state: State, branch: Branch, action: Fork, targets: ReadonlyMap<string, boolean>): string | null {
  let before: string | null = null
  for (let place = 0; place < action.calls.length; place++) {
    const { to } = action.calls[place] as Fork['calls'][number]
    // Thousands of calls are mostly to one agent.
    if (to !== before && !hasEdge(targets, to)) return `may not fork to ${whyNot(targets, to)}`
    before = to
  }
  if (!takes(state, branch, 'join')) return "has no handler 'join' to take what its fork gives"
  const wrong = joinProblem(joinSpec(action.join), action.calls.length)
  return wrong === null ? unknownKey(state, action.state) : `may not fork like this: ${wrong}`
}

const hasEdge = (targets: ReadonlyMap<string, boolean>, to: string): boolean => targets.has(to) && to !== 'End' && to !== 'User'

/** End and User are no agents: where there is an edge to one, it is gone by another way. */
function whyNot(targets: ReadonlyMap<string, boolean>, to: string): string {
  if (to === 'End' && targets.has(to)) return 'End, which is no agent: end the run with turn.finish'
  if (to === 'User' && targets.has(to)) return 'User, which is no agent: ask a person with turn.ask'
  return `${String(to)}: there is no edge to it`
}

/** Whether the agent has code for that kind of message. */
function takes(state: State, branch: Branch, kind: MessageKind): boolean {
  return shapeOf(state).agents[branch.agent]?.takes.includes(kind) ?? false
}

function unknownKey(state: State, next: Readonly<Record<string, unknown>> | undefined): string | null {
  if (next === undefined) return null
  const { merge } = shapeOf(state)
  const unknown = Object.keys(next).find((key) => !Object.hasOwn(merge, key))
  return unknown === undefined ? null : `gave a state with the key '${unknown}', for which no merge is declared`
}
