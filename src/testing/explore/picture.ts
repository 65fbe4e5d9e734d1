import { compareIds } from '../../kernel/ids.js'
import type { Happening } from './happening.js'
import type { Seen } from './search.js'

/** A schedule as a picture: lanes per branch, one row per step. */
export interface Picture {
  readonly lanes: readonly string[]
  readonly rows: readonly Row[]
}

/** One step; `gap`: so many steps before it are left out. */
export interface Row {
  readonly step: number
  readonly gap: number
  readonly cells: readonly Cell[]
}

export interface Cell {
  readonly lane: number
  readonly text: string
  readonly kind: Happening['kind']
  readonly red: boolean
}

/** Around what is to be seen, so many steps are shown; of a longer schedule the rest is left out. */
const around = 8
const rowsMax = 48

/** The picture of a schedule, with these happenings in red. */
export function pictureOf({ played }: Seen, red: readonly string[]): Picture {
  const own = played.state.run?.id ?? ''
  const names = new Set(played.taken.flatMap(({ option }) => option.map(({ lane }) => nameOf(own, lane))))
  const lanes = [...names].sort(byBranch)
  const laneOf = (lane: string): number => lanes.indexOf(nameOf(own, lane))
  const all = played.taken.map(({ option }, step) => ({
    step: step + 1,
    cells: option.map(({ lane, label, kind, id }) => ({ lane: laneOf(lane), text: label, kind, red: red.includes(id) })),
  }))
  const marked = all.flatMap(({ cells }, index) => (cells.some((cell) => cell.red) ? [index] : []))
  const isNear = (index: number): boolean => marked.some((at) => Math.abs(at - index) <= around)
  const kept = all.length <= rowsMax ? all : all.filter((_, index) => index < 3 || index >= all.length - 2 || isNear(index))
  return { lanes, rows: kept.map((row, index) => ({ ...row, gap: row.step - (kept[index - 1]?.step ?? 0) - 1 })) }
}

/** Branches by their ids, then what comes from outside. */
function byBranch(a: string, b: string): number {
  const isBranch = (name: string): boolean => /^r(\.\d+)*$/.test(name)
  if (isBranch(a) && isBranch(b)) return compareIds(a, b)
  return isBranch(a) === isBranch(b) ? (a < b ? -1 : 1) : isBranch(a) ? -1 : 1
}

/** Lanes are named as people know them: a branch of the run or of a child run, or what comes from outside. */
function nameOf(run: string, lane: string): string {
  return lane.startsWith(`${run} `) || lane.startsWith(`${run}:`) ? lane.slice(run.length + 1) : lane
}
