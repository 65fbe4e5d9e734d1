import { childRunsIn } from '../../engine/child-run.js'
import { unmeasuredReport } from '../../inspect/report.js'
import type { Report } from '../../inspect/report-data.js'
import type { Event } from '../../kernel/event.js'
import { attemptId } from '../../kernel/ids.js'
import type { Journals } from './recorded.js'

/** A run that counts, and which of its branches do. */
export interface CountedRun {
  /** What its id adds to that of the run that is played: nothing for that itself. */
  readonly run: string
  readonly report: Omit<Report, 'measured'>
  readonly journal: readonly Event[]
  readonly counts: Counts
  /** What its child runs that don't count could not undo: that remains all the same, and is a choice as it is in a run alone. */
  readonly left: readonly string[]
  /** The ids of those that do. */
  readonly children: readonly string[]
}

type Counts = (branch: string, agent: string) => boolean

/**
 * The run that is played and, down to the last, those of its child runs that count. One whose step reads cancelled, or whose attempt ran
 * out of time, does not: how far it came depends on when that choice fell. A run that undoes another counts as that does.
 */
export function countedRuns(journals: Journals): CountedRun[] {
  const counted = new Map<string, CountedRun>()
  const count = (run: string, journal: readonly Event[]): void => {
    const report = unmeasuredReport(journal)
    const undone = isUndo(journal) ? counted.get(run.slice(0, -':undo'.length)) : undefined
    const counts = undone?.counts ?? countsIn(report)
    const children = journals.size > 1 ? childRunsIn(journal.filter(usedBy(journal, counts))) : []
    counted.set(run, { run, report, journal, counts, left: leftBy(report, journal, children), children })
  }
  const own = journals.get('') ?? []
  const [started] = own
  const length = started?.type === 'run.started' ? started.runId.length : 0
  count('', own)
  // What is found on the way is looked at too.
  for (const { children } of counted.values())
    for (const id of children) {
      const run = id.slice(length)
      const journal = journals.get(run)
      if (journal !== undefined) count(run, journal)
    }
  // They came in the order in which they were started.
  return [...counted.values()].sort((a, b) => (a.run < b.run ? -1 : 1))
}

const isUndo = ([started]: readonly Event[]): boolean => started?.type === 'run.started' && started.undoes !== undefined

/** Which branches count: what was done under slots that read cancelled depends on when a choice fell. */
function countsIn({ branches, steps, status }: CountedRun['report']): Counts {
  if (status === 'cancelled') return () => false
  const ids = new Set(branches.flatMap((branch) => (branch.status === 'cancelled' ? [] : [branch.id])))
  const names = new Set(steps.flatMap((step) => (step.status === 'skipped' && step.cause === 'cancelled' ? [] : [step.id])))
  return (branch, agent) => ids.has(branch) || names.has(agent)
}

function leftBy({ notUndone }: CountedRun['report'], journal: readonly Event[], children: readonly string[]): string[] {
  if (notUndone.length === 0) return []
  const others = childRunsIn(journal).filter((id) => !children.includes(id))
  return notUndone.filter((entry) => others.some((id) => entry.startsWith(`${id}/`)))
}

/** Leaves out the attempts of which nothing was used. */
function usedBy(journal: readonly Event[], counts: Counts): (event: Event) => boolean {
  const unused = new Set(
    journal.flatMap((event) => {
      const isGivenUp = event.type === 'turn.aborted' || (event.type === 'turn.failed' && event.timedOut === true)
      return isGivenUp ? [attemptId(event.branch, event.turn, event.attempt)] : []
    }),
  )
  return (event) =>
    event.type !== 'turn.started' || (counts(event.branch, event.agent) && !unused.has(attemptId(event.branch, event.turn, event.attempt)))
}
