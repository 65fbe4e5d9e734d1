interface Place {
  readonly seq: number
}

/** A stretch of work or of waiting. */
export interface PathBar {
  readonly from: Place
  /** null: it goes on. */
  readonly to: Place | null
  /** It waits for other lanes: then it is they that hold the run up. */
  readonly waitsForOthers: boolean
  critical: boolean
}

/**
 * Marks the bars that decided when the run ended, or what it has been waiting for longest if it goes on. A decision appends its events in
 * one piece, the end of what caused it first; so what let a bar begin is the last thing that had ended when it did.
 */
export function markCriticalPath(bars: readonly PathBar[]): void {
  const held = bars.filter(({ waitsForOthers }) => !waitsForOthers)
  const ended = held.filter(({ to }) => to !== null).sort((a, b) => endOf(a) - endOf(b))
  const open = held.filter(({ to }) => to === null).sort((a, b) => a.from.seq - b.from.seq)
  let before = ended.length
  for (let bar = open[0] ?? ended[--before]; bar !== undefined; bar = ended[before]) {
    bar.critical = true
    before = lastBefore(ended, before, bar.from)
  }
}

const endOf = ({ to }: PathBar): number => to?.seq ?? Number.POSITIVE_INFINITY

/** The place, below a given one, of the last bar that had ended at a moment; -1 if there is none. */
function lastBefore(ended: readonly PathBar[], below: number, { seq }: Place): number {
  let at = below - 1
  for (let bar = ended[at]; bar !== undefined && endOf(bar) > seq; bar = ended[at]) at--
  return at
}
