import { createHash } from 'node:crypto'
import type { Bar, Lane, Span, Timeline } from './timeline.js'

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue: string } | { readonly intValue: string } | { readonly boolValue: boolean }
}

interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: 1
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  readonly status: { readonly code: 0 | 1 | 2; readonly message?: string }
}

/**
 * A run as a trace, in the JSON of OTLP, for any collector: a span for the run, one below it for each branch, one below that for each turn
 * and each wait. Ids are derived, so that the same run is the same trace whenever it is exported. What agents said is not in it.
 */
export function otlpOf(timeline: Timeline): object {
  const { runId, definition, version, kind, status, from } = timeline
  const traceId = hashOf(`${runId}/${from.at}`, 32)
  const make = spanMaker(traceId)
  const root = make(timeline, `invoke_workflow ${definition}`, 'run', undefined, {
    'gen_ai.operation.name': 'invoke_workflow',
    'gen_ai.workflow.name': definition,
    'tutti.run.id': runId,
    'tutti.definition.version': version,
    'tutti.definition.kind': kind,
    'tutti.run.status': status,
  })
  const ended = {
    ...root,
    status: statusOf(status === 'succeeded' ? 'good' : status === 'failed' ? 'bad' : 'none', timeline.error?.message),
  }
  const spans = timeline.lanes.flatMap((lane) => laneSpans(lane, root, make))
  const resource = { attributes: attributesOf({ 'service.name': 'tutti' }) }
  return { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'tutti' }, spans: [ended, ...spans] }] }] }
}

type Make = (span: Span, name: string, place: string, parent: string | undefined, facts: Facts) => OtlpSpan
type Facts = Readonly<Record<string, string | number | boolean | null>>

function spanMaker(traceId: string): Make {
  return ({ from, to }, name, place, parent, facts) => ({
    traceId,
    spanId: spanIdOf(traceId, place),
    ...(parent !== undefined && { parentSpanId: parent }),
    name,
    kind: 1,
    startTimeUnixNano: nanos(from.at),
    endTimeUnixNano: nanos(to.at),
    attributes: attributesOf(facts),
    status: { code: 0 },
  })
}

function laneSpans(lane: Lane, root: OtlpSpan, make: Make): readonly OtlpSpan[] {
  const parent = lane.parent === null ? root.spanId : spanIdOf(root.traceId, `branch ${lane.parent}`)
  const span = make(lane, `branch ${lane.id}`, `branch ${lane.id}`, parent, {
    'tutti.branch.id': lane.id,
    'tutti.branch.outcome': lane.outcome,
    'tutti.item': lane.item,
    'tutti.critical': lane.critical,
  })
  const bad = lane.outcome === 'failed'
  return [
    { ...span, status: statusOf(bad ? 'bad' : 'none', bad ? (lane.cause ?? undefined) : undefined) },
    ...lane.bars.map((bar, index) => barSpan(bar, `branch ${lane.id} ${index}`, span.spanId, make)),
  ]
}

function barSpan(bar: Bar, place: string, parent: string, make: Make): OtlpSpan {
  const isTurn = bar.turn !== null && ['turn', 'failed', 'rejected', 'aborted'].includes(bar.kind)
  const span = make(bar, isTurn ? `invoke_agent ${bar.agent}` : `${bar.kind} ${bar.agent}`, place, parent, {
    'gen_ai.operation.name': isTurn ? 'invoke_agent' : null,
    'gen_ai.agent.name': bar.agent,
    'tutti.kind': bar.kind,
    'tutti.turn': bar.turn,
    'tutti.attempt': bar.attempt,
    'tutti.activities': bar.activities.length,
    'tutti.open': bar.open,
    'tutti.critical': bar.critical,
  })
  return { ...span, status: statusOf(bar.kind === 'failed' || bar.kind === 'undo-failed' ? 'bad' : 'none', undefined) }
}

function statusOf(how: 'good' | 'bad' | 'none', message: string | undefined): OtlpSpan['status'] {
  const code = how === 'good' ? 1 : how === 'bad' ? 2 : 0
  return { code, ...(message !== undefined && { message }) }
}

const nanos = (ms: number): string => (BigInt(Math.max(0, Math.round(ms))) * 1_000_000n).toString()
const hashOf = (text: string, length: number): string => createHash('sha256').update(text).digest('hex').slice(0, length)
const spanIdOf = (traceId: string, place: string): string => hashOf(`${traceId}/${place}`, 16)

function attributesOf(facts: Facts): readonly Attribute[] {
  return Object.entries(facts).flatMap(([key, value]): Attribute[] => {
    if (value === null) return []
    if (typeof value === 'string') return [{ key, value: { stringValue: value } }]
    if (typeof value === 'boolean') return [{ key, value: { boolValue: value } }]
    return [{ key, value: { intValue: String(value) } }]
  })
}
