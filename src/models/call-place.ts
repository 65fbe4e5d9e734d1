/** Where in a run a model is called. Models that play by the place (`sim`, `script`, cassettes) find it in the options of the call. */
export interface CallPlace {
  readonly run: string
  readonly agent: string
  readonly branch: string
  readonly turn: number
  /** How many calls of a model this turn had before this one, those of rejected attempts among them. */
  readonly call: number
  /** How many calls this agent had on this branch before this one; a call that is tried again counts again. */
  readonly index: number
  /** What the agent was last asked. */
  readonly request?: unknown
  /** Who waits for this branch's reply, and may be answered with `invoke_agent`. */
  readonly waiting: string | null
  /** Those of its targets that have an edge back: they can be asked. The others take over. */
  readonly answering?: readonly string[]
}

/** Where providers look for what is theirs: none is called like this, so that no provider sends it anywhere. */
const provider = 'tutti'

/** The place as the `providerOptions` of a call. */
export function placeOptions(place: CallPlace): { readonly [provider]: CallPlace } {
  return { [provider]: place }
}

/** The place of a call, from its options; undefined if somebody else calls the model. */
export function placeOf(options: { readonly providerOptions?: unknown }): CallPlace | undefined {
  return (options.providerOptions as { readonly [provider]?: CallPlace } | undefined)?.[provider]
}
