import type { Ask } from '../inspect/ask.js'
import type { MarkRow } from './store.js'

/**
 * The open asks that the marks of a store speak of. One that can't be read is told, with its run, and left out: it must not keep anybody from
 * those of other runs.
 */
export function asksIn(marks: readonly MarkRow[], unreadable: (run: string) => void): Ask[] {
  const asks: Ask[] = []
  for (const { run, body } of marks) {
    const ask = body === null ? null : askOf(body)
    if (ask !== null) asks.push(ask)
    else if (body !== null) unreadable(run)
  }
  return asks
}

function askOf(body: string): Ask | null {
  try {
    const ask = JSON.parse(body) as Ask | null
    return typeof ask === 'object' && typeof ask?.id === 'string' ? ask : null
  } catch {
    return null
  }
}
