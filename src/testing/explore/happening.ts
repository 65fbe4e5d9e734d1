import type { Command } from '../../kernel/command.js'

/** Something that waits to be let go. */
export interface Happening {
  /** The same in every schedule. */
  readonly id: string
  /** What it belongs to: a branch, the clock, a person. At most one thing of a lane's own code runs at a time. */
  readonly lane: string
  readonly kind: 'start' | 'end' | 'activity' | 'timer' | 'person' | 'steering' | 'settle' | 'clock' | 'append'
  readonly agent: string | null
  readonly label: string
  /** The step in which it came up. */
  readonly born: number
  /** Whether letting it go may run code of the user's. */
  readonly runsCode: boolean
  /** Nothing where it is of none. */
  readonly run: string
  readonly command: Command | null
  go(instead?: Command): void
}

/** What may be let go next: one happening, or several at once as the engine does when nobody holds it: the turns of one commit, or all code that waits. */
export type Option = readonly Happening[]

export const idOf = (option: Option): string => option.map(({ id }) => id).join(' + ')
