/** The keys of what a model's turn does by itself: what was recorded under them is what its transcript is made of. */
export const keys = {
  model: (call: number): string => `model/${call}`,
  compact: (call: number): string => `compact/${call}`,
  /** `round`: the call of the model that asked for it, or 'held' if that was in an earlier turn. */
  tool: (round: number | 'held', index: number): string => `tool/${round}/${index}`,
  approval: (round: number, index: number): string => `approval/${round}/${index}`,
  guard: (when: 'before' | 'after', call: number, index: number): string => `guard/${when}/${call}/${index}`,
}

/** Exactly the keys above, and what each is of. */
const form = /^(?:(model|compact)\/\d+|(tool)\/(?:\d+|held)\/(\d+)|approval\/\d+\/\d+|guard\/(?:before|after)\/\d+\/\d+)$/

/** What was recorded under a key, as far as a transcript is made of it; null: something else, such as a step of `instructions`. */
export function retold(key: string): { readonly kind: 'model' | 'compact' } | { readonly kind: 'tool'; readonly index: number } | null {
  const [, answer, tool, index] = form.exec(key) ?? []
  if (answer !== undefined) return { kind: answer as 'model' | 'compact' }
  return tool === undefined ? null : { kind: 'tool', index: Number(index) }
}

/** The key of a step that somebody else gives in such a turn: never one of the above, and no two become the same. */
export function keyBeside(key: string): string {
  return form.test(key.replace(/^~+/, '')) ? `~${key}` : key
}
