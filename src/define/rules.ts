import type { Problem } from '../kernel/problem.js'
import { limitProblems } from '../kernel/validate.js'
import { type Limits, limitsTaken } from './limits.js'
import { aRecord, shown } from './option-check.js'

/** A rule as a string; numbers of `timeout` are seconds unless they have a unit. */
export type Rule<N extends string = string> =
  | `timeout(${number}${'' | 's' | 'm' | 'h'})`
  | `max_turns(${number})`
  | `max_branches(${number})`
  | `max_depth(${number})`
  | `join(${N})`

/** What rules and limits say together. */
export interface Rules {
  readonly limits: Limits
  readonly joins: readonly { readonly node: string; readonly where: string }[]
  readonly problems: readonly Problem[]
}

type LimitKey = 'timeoutMs' | 'maxTurns' | 'maxBranches' | 'maxDepth'

const counts: Readonly<Record<string, LimitKey>> = { max_turns: 'maxTurns', max_branches: 'maxBranches', max_depth: 'maxDepth' }
const unitMs: Readonly<Record<string, number>> = { '': 1_000, s: 1_000, m: 60_000, h: 3_600_000 }
const known = 'timeout(180), max_turns(40), max_branches(100), max_depth(8), join(Agent)'

/** Reads rules and puts them together with the typed limits; the two must not contradict each other. */
export function readRules(rules: unknown, limits: unknown): Rules {
  const problems: Problem[] = []
  const given: Limits = aRecord.is(limits) ? limitsTaken(limits as Limits) : {}
  if (limits !== undefined && !aRecord.is(limits))
    problems.push({ code: 'BAD_OPTION', where: 'limits', message: `limits is an object like { maxTurns: 40 }, not ${shown(limits)}` })
  problems.push(...limitProblems(given as Readonly<Record<string, unknown>>))

  if (rules !== undefined && !Array.isArray(rules)) {
    problems.push({ code: 'BAD_RULE', where: 'rules', message: `rules is a list of strings like ${known}, not ${shown(rules)}` })
    return { limits: given, joins: [], problems }
  }
  const joins: { node: string; where: string }[] = []
  const saidBy = new Map<LimitKey, string>()
  for (const rule of (rules ?? []) as readonly unknown[]) {
    const read = readRule(rule)
    if ('code' in read) problems.push(read)
    else if ('join' in read) joins.push({ node: read.join, where: read.where })
    else {
      const before = given[read.key]
      if (before === undefined || before === read.value) {
        given[read.key] = read.value
        if (!saidBy.has(read.key)) saidBy.set(read.key, before === undefined ? read.where : `limits.${read.key}`)
      } else {
        const other = saidBy.get(read.key) ?? `limits.${read.key}`
        const message = `${read.where} says ${read.value}, but ${other} says ${before} (${read.key}); keep one of them`
        problems.push({ code: 'RULE_CONTRADICTS', where: read.where, message })
      }
    }
  }
  return { limits: given, joins, problems }
}

type Read =
  | Problem
  | { readonly join: string; readonly where: string }
  | { readonly key: LimitKey; readonly value: number; readonly where: string }

function readRule(rule: unknown): Read {
  if (typeof rule !== 'string') return { code: 'BAD_RULE', where: 'rules', message: `a rule is a string like ${known}, not ${shown(rule)}` }
  const where = rule.trim()
  const [, name = '', argument = ''] = /^([A-Za-z_]+)\s*\(\s*(.*?)\s*\)$/u.exec(where) ?? []
  if (name === '') return { code: 'BAD_RULE', where, message: `this is no rule; write it like ${known}` }
  if (name === 'join')
    return argument === ''
      ? { code: 'BAD_RULE', where, message: 'join needs the agent where branches meet: join(Writer)' }
      : { join: argument, where }
  if (name === 'timeout') return readTimeout(argument, where)
  const key = Object.hasOwn(counts, name) ? counts[name] : undefined
  if (key === undefined) return { code: 'UNKNOWN_RULE', where, message: `there is no rule '${name}'; there are ${known}` }
  const value = /^\d+$/.test(argument) ? Number(argument) : Number.NaN
  if (!(Number.isSafeInteger(value) && value >= 1))
    return { code: 'BAD_RULE', where, message: `${name} takes a whole number of at least 1: ${name}(40)` }
  return { key, value, where }
}

function readTimeout(argument: string, where: string): Read {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([smh]?)$/.exec(argument) ?? []
  const value = amount === '' ? Number.NaN : Number(amount) * (unitMs[unit] ?? Number.NaN)
  if (!(Number.isFinite(value) && value > 0))
    return {
      code: 'BAD_RULE',
      where,
      message: 'timeout takes a time above 0, in seconds or with a unit: timeout(180), timeout(3m), timeout(1h)',
    }
  return { key: 'timeoutMs', value, where }
}
