import type { Failure } from '../kernel/failure.js'
import { marked, plain, shortened } from './escape.js'
import type { Report } from './report-data.js'
import { timeText } from './time-text.js'

/** A report as plain text, for terminals and logs. */
export function reportText(report: Report): string {
  const sections = sectionsOf(report).map(({ title, head, rows }) => {
    const heads = head.map((name) => name.toUpperCase())
    return [title, ...columns([heads, ...rows.map((row) => row.map(plain))]).map((line) => `  ${line}`)].join('\n')
  })
  const lead = summaryOf(report).map(({ name, value, depth }) => `${'  '.repeat(depth)}${name}: ${plain(value)}`)
  const measured = measuredOf(report).map(({ name, value }) => `  ${name}: ${plain(value)}`)
  return `${[lead.join('\n'), ...sections, ['Measured', ...measured].join('\n')].join('\n\n')}\n`
}

/** A report as Markdown, with a table for each of its lists. */
export function reportMarkdown(report: Report): string {
  const lead = summaryOf(report).map(({ name, value, depth }) => `${'  '.repeat(depth)}- **${name}**: ${marked(value)}`)
  const sections = sectionsOf(report).map(({ title, head, rows }) => {
    const table = [tableRow(head), tableRow(head.map(() => '---')), ...rows.map((row) => tableRow(row.map(marked)))]
    return `## ${title}\n\n${table.join('\n')}`
  })
  const measured = measuredOf(report).map(({ name, value }) => `- **${name}**: ${marked(value)}`)
  return `${[`# Run ${marked(report.runId)}`, lead.join('\n'), ...sections, `## Measured\n\n${measured.join('\n')}`].join('\n\n')}\n`
}

interface Fact {
  readonly name: string
  readonly value: string
  readonly depth: number
}

interface Section {
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

// ── what is said, in any form ────────────────────────────────────────────────────────────────────────────

function summaryOf(report: Report): Fact[] {
  const fact = (name: string, value: string): Fact => ({ name, value, depth: 0 })
  return [
    fact('Run', report.runId),
    fact('Definition', `${report.definition}, version ${report.version}`),
    fact('Status', report.status),
    ...(report.output === undefined ? [] : [fact('Output', json(report.output))]),
    ...(report.error === undefined ? [] : failureFacts('Error', report.error, 0)),
    ...(report.rollback === undefined || report.rollback === 'none' ? [] : [fact('Rollback', report.rollback)]),
    ...(report.notUndone.length === 0 ? [] : [fact('Not undone', shortened(report.notUndone.join(', ')))]),
    ...(report.agents.length === 0 ? [] : [fact('Agents', shortened(report.agents.join(', ')))]),
  ]
}

/** A failure with the chain of its causes, each a step further in. */
function failureFacts(name: string, failure: Failure, depth: number): Fact[] {
  return [
    { name, value: sentence(failure), depth },
    ...(failure.cause === undefined ? [] : failureFacts('Cause', failure.cause, depth + 1)),
    ...(failure.others ?? []).flatMap((other) => failureFacts('Beside it', other, depth + 1)),
  ]
}

function sentence({ code, message, at }: Failure): string {
  const place = [at.agent, at.step, at.branch && `branch ${at.branch}`, at.turn !== undefined && `turn ${at.turn}`].filter(Boolean)
  return `${code}: ${shortened(message)}${place.length === 0 ? '' : ` (${place.join(', ')})`}`
}

/** What a failure began with, in a cell: its code and the first line of what it says. */
function causeOf({ code, message }: Failure): string {
  return `${code}: ${shortened(message.split('\n', 1)[0] ?? '')}`
}

function sectionsOf(report: Report): Section[] {
  const all: Section[] = [
    {
      title: 'Branches',
      head: ['branch', 'agents', 'turns', 'status', 'cause'],
      rows: report.branches.map(({ id, agents, turns, status, error }) => [
        id,
        shortened(agents.join(', ')),
        `${turns}`,
        status,
        error === undefined ? '' : causeOf(error),
      ]),
    },
    {
      title: 'Steps',
      head: ['step', 'status', 'output', 'cause'],
      rows: report.steps.map(({ id, item, status, output, cause }) => [
        item === undefined ? id : `${id}[${item}]`,
        status,
        json(output),
        cause ?? '',
      ]),
    },
    {
      title: 'Interactions',
      head: ['branch', 'turn', 'from', 'to', 'outcome', 'request'],
      rows: report.interactions.map(({ branch, turn, from, to, outcome, request }) => [
        branch,
        `${turn}`,
        from,
        to,
        outcome,
        json(request),
      ]),
    },
    {
      title: 'Detached',
      head: ['branch', 'agent', 'status', 'error'],
      rows: report.detached.map(({ branch, agent, status, error }) => [branch, agent, status, error === undefined ? '' : sentence(error)]),
    },
    {
      title: 'Choices',
      head: ['at', 'kind', 'decided by'],
      rows: report.choices.map(({ at, kind, decidedBy }) => [at, kind, shortened(decidedBy.join(', '))]),
    },
  ]
  return all.filter(({ rows }) => rows.length > 0)
}

function measuredOf({ measured }: Report): Fact[] {
  const { startedAt, endedAt, durations, attempts, cancelled, refusals, usage } = measured
  const fact = (name: string, value: string): Fact => ({ name, value, depth: 1 })
  const counts = (record: Readonly<Record<string, number>>): string =>
    shortened(
      Object.entries(record)
        .map(([key, count]) => `${key} ${count}`)
        .join(', '),
    )
  const turns = Object.values(durations)
  return [
    fact('Started', timeText(startedAt)),
    ...(endedAt === undefined ? [] : [fact('Ended', `${timeText(endedAt)}, after ${endedAt - startedAt} ms`)]),
    ...(turns.length === 0 ? [] : [fact('Turns', `${turns.length}, ${turns.reduce((sum, ms) => sum + ms, 0)} ms in all`)]),
    ...(Object.keys(attempts).length === 0 ? [] : [fact('Attempts', counts(attempts))]),
    ...(cancelled === 0 ? [] : [fact('Branches cancelled', `${cancelled}`)]),
    ...(Object.keys(refusals).length === 0 ? [] : [fact('Refused', counts(refusals))]),
    ...(usage.inputTokens + usage.outputTokens === 0 ? [] : [fact('Tokens', `${usage.inputTokens} in, ${usage.outputTokens} out`)]),
    ...(usage.costUsd === undefined ? [] : [fact('Cost', `${Number(usage.costUsd.toPrecision(6))} USD`)]),
  ]
}

// ── values from agents ───────────────────────────────────────────────────────────────────────────────────

const json = (value: unknown): string => (value === undefined ? '' : shortened(JSON.stringify(value)))

// ── layout ───────────────────────────────────────────────────────────────────────────────────────────────

const tableRow = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

/** Lines with their cells one below the other; the last is as long as it is. */
function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length)
  return rows.map((row) =>
    row
      .map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}
