import type { Lane, LaneOutcome, Timeline } from './timeline.js'

/** One lane by itself. */
export interface LaneRow {
  readonly kind: 'lane'
  readonly depth: number
  readonly lane: Lane
}

/** Many lanes as one line. */
export interface GroupRow {
  readonly kind: 'group'
  readonly depth: number
  /** The agent or the step that all of them began at; null: several. */
  readonly agent: string | null
  /** Those that were opened side by side, in order. */
  readonly lanes: readonly Lane[]
  /** Everything below them. */
  readonly below: readonly Lane[]
  readonly outcomes: Readonly<Partial<Record<LaneOutcome, number>>>
}

/** A line of the picture. */
export type Row = LaneRow | GroupRow

/** Whether the run waited for something in this line. */
export function isCritical(row: Row): boolean {
  return row.kind === 'lane' ? row.lane.critical : [...row.lanes, ...row.below].some(({ critical }) => critical)
}

/** How many lanes are drawn each by itself before any are folded. */
const lanesMax = 40
/** How many lines a picture has. */
const rowsMax = 100
/** How many lanes that failed, and how many that wait for a person, stay visible whatever is folded. */
const keptMax = 6
/** Fewer siblings than these stay as they are. */
const groupMin = 3
/** The items of a step are one line if there are more of them. */
const itemsMax = 3

/**
 * The lines of a timeline. When there are more lanes than can be read, those that were opened side by side for the same agent are one line,
 * with everything below them; the lanes of the critical path, the first that failed and those that wait for a person stay visible.
 */
export function foldLanes({ lanes }: Timeline): Row[] {
  const children = childrenOf(lanes)
  const many = lanes.length > lanesMax
  const kept = many ? keptOf(lanes) : keptOf(lanes.filter(({ outcome }) => outcome === 'failed'))
  const rows: Row[] = []
  const stack: { readonly part: Lane | readonly Lane[]; readonly depth: number }[] = []
  const push = (parent: string | null, depth: number): void => {
    for (const part of partsOf(children.get(parent) ?? [], kept, many).reverse()) stack.push({ part, depth })
  }
  push(null, 0)
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { part, depth } = next
    if ('id' in part) {
      rows.push({ kind: 'lane', depth, lane: part })
      push(part.id, depth + 1)
    } else rows.push(groupOf(part, depth, belowOf(part, children)))
  }
  return rows.length <= rowsMax ? rows : cutShort(rows, kept)
}

function childrenOf(lanes: readonly Lane[]): Map<string | null, Lane[]> {
  const children = new Map<string | null, Lane[]>()
  for (const lane of lanes) {
    const siblings = children.get(lane.parent)
    if (siblings === undefined) children.set(lane.parent, [lane])
    else siblings.push(lane)
  }
  return children
}

/** What stays visible, with everything above it. */
function keptOf(lanes: readonly Lane[]): Set<string> {
  const byId = new Map(lanes.map((lane) => [lane.id, lane]))
  const kept = new Set<string>()
  const asks = ({ bars }: Lane): boolean => bars.some(({ kind, open }) => kind === 'person' && open)
  const failed = lanes.filter(({ outcome }) => outcome === 'failed').slice(0, keptMax)
  for (const found of [...lanes.filter(({ critical }) => critical), ...failed, ...lanes.filter(asks).slice(0, keptMax)])
    for (let lane: Lane | undefined = found; lane !== undefined && !kept.has(lane.id); lane = byId.get(lane.parent ?? '')) kept.add(lane.id)
  return kept
}

/** Siblings in order, those that are alike in one piece. */
function partsOf(siblings: readonly Lane[], kept: ReadonlySet<string>, many: boolean): (Lane | readonly Lane[])[] {
  const alike = new Map<string, Lane[]>()
  for (const lane of siblings) {
    if (kept.has(lane.id)) continue
    const others = alike.get(agentOf(lane))
    if (others === undefined) alike.set(agentOf(lane), [lane])
    else others.push(lane)
  }
  const folds = (group: readonly Lane[]): boolean =>
    (many && group.length >= groupMin) || (group[0]?.item !== null && group.length > itemsMax)
  return siblings.flatMap((lane): (Lane | readonly Lane[])[] => {
    const group = kept.has(lane.id) ? undefined : alike.get(agentOf(lane))
    if (group === undefined || !folds(group)) return [lane]
    return group[0] === lane ? [group] : []
  })
}

const agentOf = ({ agents }: Lane): string => agents[0] ?? ''

function belowOf(lanes: readonly Lane[], children: ReadonlyMap<string | null, readonly Lane[]>): Lane[] {
  const below: Lane[] = []
  const todo = [...lanes]
  for (let lane = todo.pop(); lane !== undefined; lane = todo.pop())
    for (const child of children.get(lane.id) ?? []) {
      below.push(child)
      todo.push(child)
    }
  return below
}

function groupOf(lanes: readonly Lane[], depth: number, below: readonly Lane[]): GroupRow {
  const outcomes: Partial<Record<LaneOutcome, number>> = {}
  for (const { outcome } of lanes) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  const agents = new Set(lanes.map(agentOf))
  return { kind: 'group', depth, agent: agents.size === 1 ? agentOf(lanes[0] as Lane) : null, lanes, below, outcomes }
}

/** Lines that are not kept and stand next to each other become one; if that is not enough, the middle does. */
function cutShort(rows: readonly Row[], kept: ReadonlySet<string>): Row[] {
  const short: Row[] = []
  let run: Row[] = []
  const close = (): void => {
    short.push(...(run.length < groupMin ? run : [joined(run)]))
    run = []
  }
  for (const row of rows) {
    if (row.kind === 'lane' && kept.has(row.lane.id)) {
      close()
      short.push(row)
    } else run.push(row)
  }
  close()
  if (short.length <= rowsMax) return short
  const half = rowsMax / 2
  return [...short.slice(0, half), joined(short.slice(half, short.length - half)), ...short.slice(short.length - half)]
}

function joined(rows: readonly Row[]): GroupRow {
  const lanes = rows.flatMap((row) => (row.kind === 'lane' ? [row.lane] : row.lanes))
  const below = rows.flatMap((row) => (row.kind === 'lane' ? [] : row.below))
  return groupOf(
    lanes,
    rows.reduce((least, { depth }) => Math.min(least, depth), rows[0]?.depth ?? 0),
    below,
  )
}
