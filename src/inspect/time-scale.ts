import { durationText } from './duration-text.js'
import type { BarKind, Moment, Timeline } from './timeline.js'

/** Where moments stand on a line from 0 to 1. */
export interface TimeScale {
  x(moment: Moment): number
  /** Times since the start with a place of their own, at least `apart` from each other. */
  ticks(apart: number): readonly { readonly x: number; readonly text: string }[]
  /** Stretches in which nothing worked, drawn shorter than they were. */
  readonly breaks: readonly { readonly from: number; readonly to: number; readonly text: string }[]
}

/** A scale as it is drawn, between two places in pixels. */
export interface TimeLine {
  readonly scale: TimeScale
  readonly left: number
  readonly right: number
}

export const xOf = ({ scale, left, right }: TimeLine, moment: Moment): number => left + scale.x(moment) * (right - left)

/** How much of the line is shared out by order alone: what happens within one millisecond is still seen one after the other. */
const orderShare = 0.2
/** Idle time is cut if it is longer than this many times the time in which something worked, and than a second. */
const idleTimes = 3
const idleMsMin = 1_000

const works: readonly BarKind[] = ['turn', 'failed', 'rejected', 'aborted', 'undo', 'undo-failed']

/** A place on the line: the moments that share it, and the way from the one before. */
interface Stop {
  readonly seq: number
  readonly at: number
  /** It ends something: time has passed since the one before, however coarse the clock. */
  readonly ends: boolean
  /** Something worked on the way here. */
  readonly busy: boolean
}

/** The scale of a timeline: time where the clock tells it, order where it doesn't, and long waits cut short. */
export function timeScale(timeline: Timeline): TimeScale {
  const { from, to } = timeline
  const stops = stopsOf(timeline)
  const gaps = stops.map((stop, index) => Math.max(0, stop.at - (stops[index - 1]?.at ?? stop.at)))
  const busyMs = sum(gaps.filter((_, index) => stops[index]?.busy))
  const cut = (index: number): boolean => {
    const gap = gaps[index] ?? 0
    return stops[index]?.busy === false && gap > idleMsMin && gap > idleTimes * busyMs
  }
  const shown = gaps.map((gap, index) => (cut(index) ? Math.max(1, busyMs / idleTimes) : gap))
  const total = sum(shown)
  const steps = stops.filter(({ ends }) => ends).length
  const share = total === 0 ? 1 : steps === 0 ? 0 : orderShare
  const places: number[] = []
  let place = 0
  for (const [index, stop] of stops.entries()) {
    place += ((shown[index] ?? 0) / (total || 1)) * (1 - share) + (stop.ends ? share / steps : 0)
    places.push(place)
  }
  const x = (moment: Moment): number => places[stopAt(stops, moment.seq)] ?? 0
  const breaks = stops.flatMap((stop, index) => {
    if (!cut(index)) return []
    const ms = stop.at - from.at
    return [
      {
        from: places[index - 1] ?? 0,
        to: places[index] ?? 1,
        text: durationText(gaps[index] ?? 0),
        fromMs: ms - (gaps[index] ?? 0),
        toMs: ms,
      },
    ]
  })
  const since = (ms: number): number => placeOf(stops, places, from.at + ms)
  return { x, breaks, ticks: (apart) => ticksOf({ totalMs: Math.max(0, to.at - from.at), shownMs: total, since, breaks, apart }) }
}

function stopsOf({ from, to, lanes, pauses, takeovers }: Timeline): Stop[] {
  const found = new Map<number, { at: number; ends: boolean; change: number }>()
  const put = ({ seq, at }: Moment, ends: boolean, change: number): void => {
    const there = found.get(seq)
    if (there === undefined) found.set(seq, { at, ends, change })
    else {
      there.ends ||= ends
      there.change += change
    }
  }
  put(from, false, 0)
  for (const { bars } of lanes)
    for (const bar of bars) {
      // While it sleeps, a turn does not work.
      const change = works.includes(bar.kind) ? 1 : bar.kind === 'sleep' ? -1 : 0
      put(bar.from, false, change)
      // Who waited for others goes on because they ended: no time passes between the two.
      put(bar.to, bar.kind !== 'barrier' && bar.kind !== 'rendezvous', -change)
    }
  for (const moment of [...pauses.flatMap((pause) => [pause.from, pause.to]), ...takeovers, to]) put(moment, false, 0)
  let working = 0
  return [...found]
    .sort(([a], [b]) => a - b)
    .map(([seq, { at, ends, change }]) => {
      const busy = working > 0
      working += change
      return { seq, at, ends, busy }
    })
}

/** The last stop at or before a place in the journal. */
function stopAt(stops: readonly Stop[], seq: number): number {
  let low = 0
  let high = stops.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((stops[middle]?.seq ?? 0) <= seq) low = middle
    else high = middle - 1
  }
  return low
}

/** Where a time stands: between the last stop at or before it and the next. */
function placeOf(stops: readonly Stop[], places: readonly number[], at: number): number {
  const next = stops.findIndex((stop) => stop.at > at)
  if (next <= 0) return next === 0 ? 0 : 1
  const [before, after] = [stops[next - 1] as Stop, stops[next] as Stop]
  const part = (at - before.at) / (after.at - before.at)
  return (places[next - 1] ?? 0) + part * ((places[next] ?? 1) - (places[next - 1] ?? 0))
}

interface TickRequest {
  readonly totalMs: number
  readonly shownMs: number
  readonly since: (ms: number) => number
  readonly breaks: readonly { readonly fromMs: number; readonly toMs: number }[]
  readonly apart: number
}

/** Times in steps that are easily read. Behind a stretch that was cut, they count from its end: `+20 ms`. */
function ticksOf({ totalMs, shownMs, since, breaks, apart }: TickRequest): { x: number; text: string }[] {
  const step = niceStep(shownMs * apart)
  const ticks: { x: number; text: string }[] = []
  const starts = [0, ...breaks.map(({ toMs }) => toMs)]
  for (const [index, start] of starts.entries()) {
    const end = breaks[index]?.fromMs ?? totalMs
    for (let ms = index === 0 ? 0 : step; start + ms <= end; ms += step) {
      const x = start + ms === 0 ? 0 : since(start + ms)
      if (ticks.length > 0 && x - (ticks.at(-1)?.x ?? 0) < apart) continue
      ticks.push({ x, text: index === 0 ? (ms === 0 ? '0' : durationText(ms)) : `+${durationText(ms)}` })
    }
  }
  return ticks
}

const niceSteps: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000,
  7_200_000, 21_600_000, 43_200_000, 86_400_000,
]

const niceStep = (ms: number): number => niceSteps.find((step) => step >= ms) ?? Math.ceil(ms / 86_400_000) * 86_400_000

const sum = (list: readonly number[]): number => list.reduce((all, one) => all + one, 0)
