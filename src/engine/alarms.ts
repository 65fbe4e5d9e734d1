import type { Clock } from './tutti.js'

interface Alarm {
  readonly due: number
  readonly ring: () => void
  off: boolean
}

/** All that an engine waits for in time: a heap of alarms, and one sleep until the earliest that still matters. */
export class Alarms {
  readonly #clock: Clock
  #heap: Alarm[] = []
  #off = 0
  #sleep: { readonly due: number; readonly stop: AbortController } | null = null
  #closed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Rings once at the given time; gives a function that takes it back. */
  at(due: number, ring: () => void): () => void {
    const alarm: Alarm = { due, ring, off: this.#closed }
    if (this.#closed) return () => {}
    push(this.#heap, alarm)
    this.#arm()
    return () => {
      if (alarm.off) return
      alarm.off = true
      this.#off++
      this.#tidy()
    }
  }

  close(): void {
    this.#closed = true
    this.#heap = []
    this.#arm()
  }

  /** What was taken back is dropped when it comes to the top, or when it is most of the heap. */
  #tidy(): void {
    if (this.#off > 64 && this.#off * 2 > this.#heap.length) {
      const left = this.#heap.filter((alarm) => !alarm.off)
      this.#heap = []
      this.#off = 0
      for (const alarm of left) push(this.#heap, alarm)
    }
    this.#arm()
  }

  #arm(): void {
    for (; this.#heap[0]?.off; this.#off--) pop(this.#heap)
    const next = this.#heap[0]
    if (this.#sleep?.due === next?.due) return
    this.#sleep?.stop.abort()
    this.#sleep = null
    if (next === undefined) return
    const sleep = { due: next.due, stop: new AbortController() }
    this.#sleep = sleep
    void this.#clock.sleep(Math.max(0, next.due - this.#clock.now()), sleep.stop.signal).then(() => {
      if (this.#sleep !== sleep) return
      this.#sleep = null
      this.#ringDue()
      this.#arm()
    })
  }

  #ringDue(): void {
    const now = this.#clock.now()
    for (let next = this.#heap[0]; next !== undefined && next.due <= now; next = this.#heap[0]) {
      pop(this.#heap)
      if (next.off) this.#off--
      else {
        next.off = true
        next.ring()
      }
    }
  }
}

function push(heap: Alarm[], alarm: Alarm): void {
  let at = heap.push(alarm) - 1
  while (at > 0) {
    const up = (at - 1) >> 1
    if ((heap[up]?.due ?? 0) <= alarm.due) break
    swap(heap, at, up)
    at = up
  }
}

function pop(heap: Alarm[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  heap[0] = last
  for (let at = 0; ; ) {
    const left = 2 * at + 1
    if (left >= heap.length) return
    const right = left + 1
    const least = right < heap.length && dueOf(heap, right) < dueOf(heap, left) ? right : left
    if (dueOf(heap, at) <= dueOf(heap, least)) return
    swap(heap, at, least)
    at = least
  }
}

const dueOf = (heap: readonly Alarm[], at: number): number => heap[at]?.due ?? Number.POSITIVE_INFINITY

function swap(heap: Alarm[], a: number, b: number): void {
  const kept = heap[a]
  const other = heap[b]
  if (kept === undefined || other === undefined) return
  heap[a] = other
  heap[b] = kept
}
