// Control characters, among them NUL, at which some databases cut a text; and halves of characters, which none can store.
const unfit = /[\p{Cc}\p{Cs}]/u

/** Whether every store gives this text back as it was, also where it is an id, a key or a tag. Whoever takes one from users asks before. */
export function isStorable(text: string): boolean {
  return !unfit.test(text)
}
