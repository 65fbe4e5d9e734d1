import type { RunResult } from '../../engine/tutti.js'
import type { Report } from '../../inspect/report-data.js'

/** How a run ended, from its report. One that did not end is told as cancelled, with the reason. */
export function runResult(report: Report): RunResult<never> {
  const rollback = report.rollback ?? 'none'
  if (report.status === 'succeeded') return Object.freeze({ status: 'succeeded', output: report.output as never, rollback, report })
  if (report.status === 'failed' && report.error !== undefined)
    return Object.freeze({ status: 'failed', error: report.error, rollback, report })
  const reason = report.status === 'cancelled' ? {} : { reason: `the run did not end in this schedule: it is ${report.status}` }
  return Object.freeze({ status: 'cancelled', ...reason, rollback, report })
}
