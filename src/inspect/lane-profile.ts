import type { TimeScale } from './time-scale.js'
import type { BarKind, Lane } from './timeline.js'

/** How many lanes of a group do what, in one part of the line. */
export interface ProfileBin {
  readonly works: number
  readonly waits: number
  readonly person: number
  readonly failed: number
  readonly undo: number
}

type Doing = keyof ProfileBin

const doing: Readonly<Record<BarKind, Doing>> = {
  turn: 'works',
  failed: 'failed',
  rejected: 'failed',
  aborted: 'works',
  sleep: 'waits',
  backoff: 'waits',
  barrier: 'waits',
  rendezvous: 'waits',
  person: 'person',
  undo: 'undo',
  'undo-failed': 'failed',
}

/** What a group does over time, in so many parts. Every bar counts in at least one of them. */
export function laneProfile(lanes: readonly Lane[], scale: TimeScale, parts: number): ProfileBin[] {
  const changes = { works: zeros(parts), waits: zeros(parts), person: zeros(parts), failed: zeros(parts), undo: zeros(parts) }
  const add = (list: number[], at: number, by: number): void => {
    list[at] = (list[at] ?? 0) + by
  }
  for (const { bars } of lanes)
    for (const bar of bars) {
      const first = Math.min(parts - 1, Math.round(scale.x(bar.from) * parts))
      const after = Math.max(first + 1, Math.round(scale.x(bar.to) * parts))
      const list = changes[doing[bar.kind]]
      add(list, first, 1)
      add(list, Math.min(parts, after), -1)
    }
  const now = { works: 0, waits: 0, person: 0, failed: 0, undo: 0 }
  return Array.from({ length: parts }, (_, part) => {
    for (const what of Object.keys(now) as Doing[]) now[what] += changes[what][part] ?? 0
    return { ...now }
  })
}

const zeros = (parts: number): number[] => Array.from({ length: parts + 1 }, () => 0)
