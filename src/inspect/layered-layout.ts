/** A box that has to be placed; it is made higher where its lines need that. */
export interface Box {
  readonly id: string
  readonly width: number
  readonly height: number
}

export interface Placed extends Box {
  readonly x: number
  readonly y: number
}

/**
 * A line between two boxes, as the points it goes through from left to right: straight through a column and curved between two, in turn. It
 * begins and ends straight, because a box may be narrower than its column.
 */
export interface Route {
  /** Its place in the list of links. */
  readonly link: number
  /** It leads from right to left. */
  readonly reversed: boolean
  readonly points: readonly { readonly x: number; readonly y: number }[]
}

export interface Layout {
  readonly width: number
  readonly height: number
  readonly boxes: readonly Placed[]
  readonly routes: readonly Route[]
}

export interface LinkEnds {
  readonly from: string
  readonly to: string
}

/** How far apart boxes stand from each other, in a column and between columns. */
const apart = 18
const between = 64
/** How far apart lines end on the side of a box, so that their heads are told from each other. */
const headsApart = 10
const sweeps = 12
/** A picture with more long lines than can be led between its boxes has them behind the boxes. */
const passesMax = 3_000

/** A box, or the place in between where a long line passes a column. */
interface Cell {
  readonly id: string
  readonly layer: number
  readonly width: number
  readonly height: number
  readonly before: Cell[]
  readonly after: Cell[]
  y: number
}

interface Chain {
  readonly link: number
  readonly reversed: boolean
  readonly cells: readonly Cell[]
}

/**
 * Places boxes in columns so that lines lead from left to right as far as they can: cycles are turned round, each box stands behind those
 * that lead to it, and columns are sorted so that few lines cross. The same input always gives the same layout.
 */
export function layeredLayout(boxes: readonly Box[], links: readonly LinkEnds[], last: readonly string[] = []): Layout {
  const forward = withoutCycles(boxes, links)
  const layers = layersOf(boxes, forward, last)
  const { columns, chains } = chained(boxes, forward, layers)
  sortColumns(columns)
  for (const column of columns) stack(column)
  for (let sweep = 0; sweep < sweeps; sweep++) for (const column of sweep % 2 === 0 ? columns : [...columns].reverse()) settle(column)
  return drawn(boxes, columns, chains)
}

interface Forward extends LinkEnds {
  readonly link: number
  readonly reversed: boolean
}

/** The links, each turned so that there is no cycle; one from a box to itself is left out. */
function withoutCycles(boxes: readonly Box[], links: readonly LinkEnds[]): Forward[] {
  const out = new Map<string, string[]>(boxes.map(({ id }) => [id, []]))
  for (const { from, to } of links) if (out.has(to)) out.get(from)?.push(to)
  const state = new Map<string, 'open' | 'done'>()
  const back = new Set<string>()
  for (const { id } of boxes) {
    const stack: { readonly id: string; next: number }[] = state.has(id) ? [] : [{ id, next: 0 }]
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      state.set(top.id, 'open')
      const to = out.get(top.id)?.[top.next++]
      if (to === undefined) {
        state.set(top.id, 'done')
        stack.pop()
      } else if (state.get(to) === 'open') back.add(JSON.stringify([top.id, to]))
      else if (!state.has(to)) stack.push({ id: to, next: 0 })
    }
  }
  return links.flatMap(({ from, to }, link) => {
    if (from === to || !out.has(from) || !out.has(to)) return []
    const reversed = back.has(JSON.stringify([from, to]))
    return [reversed ? { from: to, to: from, link, reversed } : { from, to, link, reversed }]
  })
}

/** The column of each box: behind everything that leads to it; some stand in the last one, if they lead nowhere. */
function layersOf(boxes: readonly Box[], links: readonly LinkEnds[], last: readonly string[]): Map<string, number> {
  const layers = new Map(boxes.map(({ id }) => [id, 0]))
  const into = new Map(boxes.map(({ id }) => [id, 0]))
  const out = new Map<string, string[]>(boxes.map(({ id }) => [id, []]))
  for (const { from, to } of links) {
    into.set(to, (into.get(to) ?? 0) + 1)
    out.get(from)?.push(to)
  }
  const ready = boxes.map(({ id }) => id).filter((id) => into.get(id) === 0)
  for (let id = ready.shift(); id !== undefined; id = ready.shift())
    for (const to of out.get(id) ?? []) {
      layers.set(to, Math.max(layers.get(to) ?? 0, (layers.get(id) ?? 0) + 1))
      const left = (into.get(to) ?? 1) - 1
      into.set(to, left)
      if (left === 0) ready.push(to)
    }
  const deepest = Math.max(0, ...layers.values())
  for (const id of last) if (out.get(id)?.length === 0) layers.set(id, deepest)
  return layers
}

function chained(
  boxes: readonly Box[],
  links: readonly Forward[],
  layers: ReadonlyMap<string, number>,
): { columns: Cell[][]; chains: Chain[] } {
  const columns: Cell[][] = Array.from({ length: Math.max(0, ...layers.values()) + 1 }, () => [])
  const cell = (id: string, layer: number, width: number, height: number): Cell => {
    const made = { id, layer, width, height, before: [], after: [], y: 0 }
    columns[layer]?.push(made)
    return made
  }
  const [out, into] = [counted(links.map(({ from }) => from)), counted(links.map(({ to }) => to))]
  const byId = new Map(
    boxes.map(({ id, width, height }) => {
      const lines = Math.max(out.get(id) ?? 0, into.get(id) ?? 0)
      return [id, cell(id, layers.get(id) ?? 0, width, Math.max(height, (lines + 1) * headsApart))]
    }),
  )
  const passes = links.reduce((sum, { from, to }) => sum + (layers.get(to) ?? 0) - (layers.get(from) ?? 0) - 1, 0)
  const chains = links.flatMap(({ from, to, link, reversed }): Chain[] => {
    const [start, end] = [byId.get(from), byId.get(to)]
    if (start === undefined || end === undefined) return []
    const cells = [start]
    if (passes <= passesMax) for (let layer = start.layer + 1; layer < end.layer; layer++) cells.push(cell(`${link}:${layer}`, layer, 0, 6))
    cells.push(end)
    for (const [index, one] of cells.entries()) {
      const next = cells[index + 1]
      if (next === undefined) continue
      one.after.push(next)
      next.before.push(one)
    }
    return [{ link, reversed, cells }]
  })
  return { columns, chains }
}

function counted(ids: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

/** Each cell goes to the middle of those it is joined to, from the left and from the right in turn. */
function sortColumns(columns: Cell[][]): void {
  const place = new Map<Cell, number>()
  const number = (column: readonly Cell[]): void => column.forEach((cell, index) => void place.set(cell, index))
  columns.forEach(number)
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const rightwards = sweep % 2 === 0
    for (const column of rightwards ? columns.slice(1) : columns.slice(0, -1).reverse()) {
      const middle = new Map(
        column.map((cell) => {
          const others = (rightwards ? cell.before : cell.after).map((other) => place.get(other) ?? 0)
          return [cell, others.length === 0 ? (place.get(cell) ?? 0) : mean(others)]
        }),
      )
      column.sort((a, b) => (middle.get(a) ?? 0) - (middle.get(b) ?? 0) || (place.get(a) ?? 0) - (place.get(b) ?? 0))
      number(column)
    }
  }
}

const mean = (list: readonly number[]): number => list.reduce((sum, one) => sum + one, 0) / list.length

function stack(column: readonly Cell[]): void {
  const height = column.reduce((sum, cell) => sum + cell.height + apart, -apart)
  let y = -height / 2
  for (const cell of column) {
    cell.y = y + cell.height / 2
    y += cell.height + apart
  }
}

/** Draws each cell towards those it is joined to, as far as its neighbours let it; `y` is the middle of a cell. */
function settle(column: readonly Cell[]): void {
  const wished = column.map((cell) => {
    const others = [...cell.before, ...cell.after].map(({ y }) => y)
    return others.length === 0 ? cell.y : mean(others)
  })
  const room = (index: number): number => ((column[index - 1]?.height ?? 0) + (column[index]?.height ?? 0)) / 2 + apart
  const down: number[] = []
  for (const [index, y] of wished.entries()) down.push(index === 0 ? y : Math.max(y, (down[index - 1] ?? 0) + room(index)))
  const up: number[] = []
  for (let index = wished.length - 1; index >= 0; index--) {
    const y = wished[index] ?? 0
    up[index] = index === wished.length - 1 ? y : Math.min(y, (up[index + 1] ?? 0) - room(index + 1))
  }
  for (const [index, cell] of column.entries()) cell.y = ((down[index] ?? 0) + (up[index] ?? 0)) / 2
}

function drawn(boxes: readonly Box[], columns: readonly (readonly Cell[])[], chains: readonly Chain[]): Layout {
  const cells = columns.flat()
  const top = cells.reduce((least, { y, height }) => Math.min(least, y - height / 2), 0)
  const lefts: number[] = []
  const widths = columns.map((column) => column.reduce((most, { width }) => Math.max(most, width), 0))
  let x = 0
  for (const width of widths) {
    lefts.push(x)
    x += width + between
  }
  const leftOf = (cell: Cell): number => (lefts[cell.layer] ?? 0) + ((widths[cell.layer] ?? 0) - cell.width) / 2
  const byId = new Map(cells.map((cell) => [cell.id, cell]))
  const ports = portsOf(chains, top)
  return {
    width: x - between,
    height: cells.reduce((most, { y, height }) => Math.max(most, y + height / 2 - top), 0),
    boxes: boxes.flatMap((box) => {
      const cell = byId.get(box.id)
      return cell === undefined ? [] : [{ ...box, height: cell.height, x: leftOf(cell), y: cell.y - cell.height / 2 - top }]
    }),
    routes: chains.map((chain) => {
      const { link, reversed } = chain
      const points = chain.cells.flatMap((cell, index) => {
        const column = lefts[cell.layer] ?? 0
        const across = (left: number, right: number, y: number): Route['points'] => [
          { x: left, y },
          { x: right, y },
        ]
        const end = column + (widths[cell.layer] ?? 0)
        if (index === 0) return across(leftOf(cell) + cell.width, end, ports.out.get(chain) ?? 0)
        if (index === chain.cells.length - 1) return across(column, leftOf(cell), ports.into.get(chain) ?? 0)
        return across(column, end, cell.y - top)
      })
      return { link, reversed, points }
    }),
  }
}

/** Where on the side of its box each line begins and ends: spread out, in the order of where they come from or go to. */
function portsOf(chains: readonly Chain[], top: number): { out: Map<Chain, number>; into: Map<Chain, number> } {
  const spread = (end: (chain: Chain) => Cell | undefined, next: (chain: Chain) => Cell | undefined): Map<Chain, number> => {
    const sides = new Map<Cell, Chain[]>()
    for (const chain of chains) {
      const cell = end(chain)
      if (cell === undefined) continue
      const side = sides.get(cell)
      if (side === undefined) sides.set(cell, [chain])
      else side.push(chain)
    }
    const ports = new Map<Chain, number>()
    for (const [cell, side] of sides) {
      side.sort((a, b) => (next(a)?.y ?? 0) - (next(b)?.y ?? 0) || a.link - b.link)
      side.forEach((chain, index) => ports.set(chain, cell.y - top + cell.height * ((index + 1) / (side.length + 1) - 0.5)))
    }
    return ports
  }
  return {
    out: spread(
      ({ cells }) => cells[0],
      ({ cells }) => cells[1],
    ),
    into: spread(
      ({ cells }) => cells.at(-1),
      ({ cells }) => cells.at(-2),
    ),
  }
}
