import { expect, test } from 'vitest'
import { search } from './alone.js'
import type { RefStep } from './reference.js'
import { Reference } from './reference.js'

const [from = 1, graphs = 80, orders = 8] = (process.env['TUTTI_UNDO_GRAPHS'] ?? '').split(',').filter(Boolean).map(Number)

test('property: for equal choices everything a graph did is undone alike, once, and after what depends on it', {
  timeout: 3_600_000,
}, () => {
  const found = search({ from, graphs, orders })
  expect(found.divergences).toEqual([])
  expect(found.compared).toBeGreaterThan(found.games * 0.6)
  // A search that has nothing to undo, or never fails to, would find nothing.
  expect(found.rollbacks['complete']).toBeGreaterThan(found.games / 10)
  expect(found.rollbacks['partial']).toBeGreaterThan(found.games / 30)
})

const step = (id: string, after: readonly string[], more: Partial<RefStep> = {}): RefStep => ({
  id,
  after,
  join: 'all',
  kind: 'run',
  attempts: 1,
  onError: 'fail',
  compensates: true,
  ...more,
})

const value = { type: 'value', value: 1 } as const
const failure = { type: 'failure', message: 'no' } as const

/** Undoes what is owed, always the first of it, to the end; what was owed at each step. */
function undoAll(run: Reference): string[] {
  const seen: string[] = []
  for (let owed = run.undos(); owed.length > 0; owed = run.undos()) {
    seen.push(owed.map(({ of }) => of).join(' '))
    run.undo(owed[0]?.of as string, 'compensated')
  }
  return seen
}

test('a step is undone after all that come after it, through steps that have nothing to undo', () => {
  const run = new Reference({
    steps: [step('a', []), step('b', ['a'], { compensates: false }), step('c', ['b']), step('d', [])],
    stragglers: 'wait',
    required: [],
  })
  for (const id of ['a', 'b', 'c']) run.complete(id, undefined, value)
  run.complete('d', undefined, failure)
  expect(undoAll(run)).toEqual(['c', 'a'])
  expect(run.end()).toMatchObject({ status: 'failed', rollback: 'complete', notUndone: [] })
})

test('items are undone beside each other, and after the step that got them', () => {
  const run = new Reference({
    steps: [step('list', [], { kind: 'each' }), step('use', ['list']), step('end', ['use'])],
    stragglers: 'wait',
    required: [],
  })
  run.complete('list', undefined, { type: 'items', items: ['x', 'y'] })
  for (const item of [0, 1]) run.complete('list', item, value)
  run.complete('use', undefined, value)
  run.complete('end', undefined, failure)
  expect(undoAll(run)).toEqual(['use', 'list:0 list:1', 'list:1'])
})

test('what a skipped step and one with a fallback did stays, unless the run fails', () => {
  for (const last of [value, failure]) {
    const steps = [step('a', [], { onError: 'skip' }), step('b', [], { onError: { fallback: 0 } }), step('c', [])]
    const run = new Reference({ steps, stragglers: 'wait', required: [] })
    for (const id of ['a', 'b']) {
      run.record(id, undefined, { key: 'k', compensates: true, outcome: 'done' })
      run.complete(id, undefined, failure)
    }
    run.complete('c', undefined, last)
    expect(undoAll(run)).toEqual(last === value ? [] : ['a/k b/k', 'b/k'])
    expect(run.end()).toMatchObject(last === value ? { status: 'succeeded', rollback: 'none' } : { status: 'failed', rollback: 'complete' })
  }
})

test('what was aborted is waited for; what it did after all is undone, and what nobody knows is listed', () => {
  for (const how of ['ended', 'late', 'fenced'] as const) {
    const run = new Reference({ steps: [step('a', []), step('b', [])], stragglers: 'cancel', required: [] })
    run.complete('a', undefined, failure)
    expect([run.end(), run.undos()]).toEqual([null, []])
    run.settle('b', undefined, how)
    expect(undoAll(run)).toEqual(how === 'late' ? ['b'] : [])
    expect(run.end()?.rollback).toBe({ ended: 'none', late: 'complete', fenced: 'partial' }[how])
    const decidedBy = { ended: [], late: [['b']], fenced: [['b?']] }[how]
    expect(run.choices().flatMap((choice) => (choice.kind === 'undo' ? [choice.decidedBy] : []))).toEqual(decidedBy)
  }
})
