import type { Event } from '../kernel/event.js'
import type { Failure } from '../kernel/failure.js'
import type { Report } from './report-data.js'
import { chooseTimeouts } from './step-timeouts.js'

type Step = Report['steps'][number]
type Choice = Report['choices'][number]
type Interaction = Report['interactions'][number]

/** What the journal says of one step, or of one item of it. */
interface StepFacts {
  readonly branch: string
  readonly step: string
  readonly item: number | null
  /** What the item is. */
  readonly request: unknown
  /** Of a step with a list: its items. */
  calls: readonly { readonly request?: unknown }[]
  sees: readonly string[]
  ran: boolean
  settled: { readonly status: 'succeeded' | 'failed' | 'skipped'; readonly output?: unknown; readonly cause?: string } | null
  readonly choices: Choice[]
}

/**
 * What is reported of a graph (KERNEL §12): its steps in declared order, each followed by its items; what each was given by whom; the
 * choices. A step that had not settled when a failure stopped the graph reads cancelled, with nothing below it.
 */
export function graphLists(
  events: readonly Event[],
): Pick<Report, 'agents' | 'interactions' | 'branches' | 'steps' | 'detached' | 'choices'> {
  const facts = factsOf(events)
  const listed = facts.steps.flatMap((step) =>
    facts.cancelled.has(step.branch) ? [step] : [step, ...(facts.items.get(step.branch) ?? [])],
  )
  const counted = listed.filter(({ branch }) => !facts.cancelled.has(branch))
  return {
    agents: facts.steps.filter((step) => step.ran && !facts.cancelled.has(step.branch)).map(({ step }) => step),
    interactions: counted.flatMap(interactionsOf),
    branches: [],
    steps: listed.flatMap((step) => stepOf(step, facts.cancelled.has(step.branch))),
    detached: [],
    choices: [...counted.flatMap(({ choices }) => choices), ...facts.choices],
  }
}

interface Facts {
  /** In declared order. */
  readonly steps: StepFacts[]
  readonly items: Map<string, StepFacts[]>
  /** Branches of steps that read cancelled. */
  readonly cancelled: Set<string>
  /** Of the graph itself. */
  readonly choices: Choice[]
}

function factsOf(events: readonly Event[]): Facts {
  const facts: Facts = { steps: [], items: new Map(), cancelled: new Set(), choices: [] }
  const byBranch = new Map<string, StepFacts>()
  for (const event of events) {
    const step = 'branch' in event && typeof event.branch === 'string' ? byBranch.get(event.branch) : undefined
    switch (event.type) {
      case 'branch.opened': {
        const above = event.parent === null ? undefined : byBranch.get(event.parent)
        const opened: StepFacts = {
          branch: event.branch,
          step: event.to,
          item: event.parent === null ? null : event.slot,
          request: above?.calls[event.slot]?.request,
          calls: [],
          sees: [],
          ran: false,
          settled: null,
          choices: [],
        }
        byBranch.set(event.branch, opened)
        if (event.parent === null) facts.steps.push(opened)
        else if (event.slot === 0) facts.items.set(event.parent, [opened])
        else facts.items.get(event.parent)?.push(opened)
        break
      }
      case 'gate.opened':
        if (step === undefined) break
        step.sees = event.sees ?? []
        if (event.decidedBy !== undefined) step.choices.push({ at: step.step, kind: 'gate', decidedBy: event.decidedBy })
        break
      case 'turn.started':
        if (step !== undefined) step.ran = true
        break
      case 'turn.completed':
        if (step !== undefined && event.action.type === 'fork') step.calls = event.action.calls
        break
      case 'turn.failed':
        if (event.timedOut) step?.choices.push({ at: `${event.branch}/${event.turn}`, kind: 'timeout', decidedBy: [event.attempt] })
        break
      case 'activity.completed':
      case 'activity.failed':
        if (step !== undefined) chooseTimeouts(step.choices, event)
        break
      case 'ask.expired':
        step?.choices.push({ at: event.askId, kind: 'timeout', decidedBy: [] })
        break
      case 'step.completed':
        if (step !== undefined) step.settled = { status: 'succeeded', ...(event.output !== undefined && { output: event.output }) }
        break
      case 'step.skipped':
        if (step !== undefined) step.settled = { status: 'skipped', cause: event.cause }
        break
      case 'branch.settled':
        if (step !== undefined && event.status === 'failed') step.settled = { status: 'failed', cause: causeOf(event.error) }
        break
      case 'barrier.fired':
        if (event.barrier === '#' && event.decidedBy !== undefined) {
          const deciding = new Set(event.decidedBy)
          facts.choices.push({ at: '#', kind: 'join', decidedBy: event.decidedBy })
          facts.steps.forEach(({ branch }, slot) => deciding.has(slot) || facts.cancelled.add(branch))
        }
        break
      default:
        break
    }
  }
  return facts
}

const causeOf = ({ code, message }: Failure): string => `${code}: ${message}`

function stepOf({ step, item, settled }: StepFacts, cancelled: boolean): Step[] {
  const place = { id: step, ...(item !== null && { item }) }
  if (cancelled) return [{ ...place, status: 'skipped', cause: 'cancelled' }]
  return settled === null ? [] : [{ ...place, ...settled }]
}

/** Who gave it what it ran with: the steps it saw, or nobody. */
function interactionsOf({ branch, step, item, request, sees, ran, settled }: StepFacts): Interaction[] {
  if (!ran || settled === null || settled.status === 'skipped') return []
  const outcome = settled.status === 'failed' ? 'failed' : 'arrived'
  const from = item !== null ? [step] : sees.length === 0 ? ['Start'] : sees
  return from.map((before) => ({ branch, turn: 1, from: before, to: step, ...(request !== undefined && { request }), outcome }))
}
