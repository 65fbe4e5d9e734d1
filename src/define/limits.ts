import type { Problem } from '../kernel/problem.js'
import { defaultLimits, type RunLimits } from '../kernel/shape.js'
import { limitNames, limitProblems } from '../kernel/validate.js'
import { aRecord, optionsTaken } from './option-check.js'

/** What a run may use. Crossing one fails the run, not the branch that happened to cross it; `concurrency` only delays. */
export interface Limits {
  timeoutMs?: number
  maxTurns?: number
  maxTurnsPerBranch?: number
  maxBranches?: number
  maxDepth?: number
  maxFanOut?: number
  concurrency?: number
  tokens?: number
  costUsd?: number
}

/** What is wrong with the limits among the options of a call; that they are a record, its kinds say. */
export function limitsGiven(limits: unknown): Problem[] {
  return aRecord.is(limits) ? limitProblems(limits as Readonly<Record<string, unknown>>) : []
}

/** Limits as they are now, those that are inherited too. */
export function limitsTaken(given: Limits): Limits {
  return optionsTaken(given, limitNames)
}

/** The kernel's limits: those given, and `base` for the rest. */
export function runLimits(given: Limits, base: RunLimits = defaultLimits): RunLimits {
  return Object.freeze({
    timeoutMs: given.timeoutMs ?? base.timeoutMs,
    maxTurns: given.maxTurns ?? base.maxTurns,
    maxTurnsPerBranch: given.maxTurnsPerBranch ?? base.maxTurnsPerBranch,
    maxBranches: given.maxBranches ?? base.maxBranches,
    maxDepth: given.maxDepth ?? base.maxDepth,
    maxFanOut: given.maxFanOut ?? base.maxFanOut,
    concurrency: given.concurrency ?? base.concurrency,
    ...(given.tokens !== undefined && { tokens: given.tokens }),
    ...(given.costUsd !== undefined && { costUsd: given.costUsd }),
  })
}
