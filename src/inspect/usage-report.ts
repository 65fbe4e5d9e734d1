import type { Event } from '../kernel/event.js'
import type { Usage } from '../kernel/usage.js'
import type { Report, UsageTotal } from './report-data.js'

/** What the models of a run have used: in all, and by whom. Nothing by anybody where no model was called. */
export function usageReport(journal: readonly Event[]): Pick<Report['measured'], 'usage' | 'usageBy'> {
  const used = usagesIn(journal)
  const usage = total(used.map((each) => each.usage))
  if (used.length === 0) return { usage }
  return { usage, usageBy: { agents: grouped(used, 'agent'), branches: grouped(used, 'branch') } }
}

interface UsedBy {
  readonly agent: string
  readonly branch: string
  readonly usage: Usage
}

/** A step that is a run of its own has used what that has. */
function usagesIn(journal: readonly Event[]): UsedBy[] {
  return journal.flatMap((event) => {
    switch (event.type) {
      case 'activity.completed':
      case 'activity.failed':
      case 'turn.failed':
      case 'turn.aborted':
        return isTold(event.usage) ? [{ agent: event.agent, branch: event.branch, usage: event.usage }] : []
      case 'step.completed':
        return isTold(event.usage) ? [{ agent: event.step, branch: event.branch, usage: event.usage }] : []
      default:
        return []
    }
  })
}

/** Whether calls were made of which is known what they used, and which count here first. */
function isTold(usage: Usage | undefined): usage is Usage {
  return usage !== undefined && usage.counted !== true && usage.calls > 0
}

/** What the models of a run have used in all; undefined: none was called. */
export function usageIn(journal: readonly Event[]): Usage | undefined {
  const used = usagesIn(journal).map(({ usage }) => usage)
  return used.length === 0 ? undefined : { calls: used.reduce((sum, { calls }) => sum + calls, 0), ...total(used) }
}

function grouped(used: readonly UsedBy[], by: 'agent' | 'branch'): Readonly<Record<string, UsageTotal & { readonly calls: number }>> {
  const names = [...new Set(used.map((each) => each[by]))].sort()
  return Object.fromEntries(
    names.map((name) => {
      const own = used.filter((each) => each[by] === name).map((each) => each.usage)
      return [name, { calls: own.reduce((sum, { calls }) => sum + calls, 0), ...total(own) }]
    }),
  )
}

/** A cost is there only if that of every call that took tokens is known: a part of it would pass for the whole. */
function total(all: readonly Usage[]): UsageTotal {
  const sum = (of: (usage: Usage) => number) => all.reduce((so, usage) => so + of(usage), 0)
  const known = all.some(({ costUsd }) => costUsd !== undefined)
  const unknown = all.some(({ costUsd, inputTokens, outputTokens }) => costUsd === undefined && inputTokens + outputTokens > 0)
  return {
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    ...(known && !unknown && { costUsd: sum(({ costUsd }) => costUsd ?? 0) }),
  }
}
