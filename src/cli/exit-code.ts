/** How a command ends; `interrupted` is what shells expect after Ctrl-C. */
export const exitCode = {
  done: 0,
  /** The run failed or was cancelled, or what was asked for was refused. */
  failed: 1,
  /** Wrong use: a command, an input or an answer that is not taken as it was typed. */
  usage: 2,
  notFound: 3,
  /** The run waits for a person, or is paused. */
  waits: 4,
  /** A race, or a broken invariant, was found. */
  race: 5,
  interrupted: 130,
} as const

export type ExitCode = (typeof exitCode)[keyof typeof exitCode]
