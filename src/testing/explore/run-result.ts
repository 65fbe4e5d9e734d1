import type { RunResult } from '../../engine/tutti.js'
import type { Report } from '../../inspect/report-data.js'
import { deepFreeze } from '../../kernel/deep-freeze.js'

/** How a run ended, from its report. One that did not end is told as cancelled, with the reason. */
export function runResult(report: Report): RunResult<never> {
  const rollback = report.rollback ?? 'none'
  if (report.status === 'succeeded') return deepFreeze({ status: 'succeeded', output: report.output as never, rollback, report })
  if (report.status === 'failed' && report.error !== undefined)
    return deepFreeze({ status: 'failed', error: report.error, rollback, report })
  const reason = report.status === 'cancelled' ? {} : { reason: `the run did not end in this schedule: it is ${report.status}` }
  return deepFreeze({ status: 'cancelled', ...reason, rollback, report })
}
