/** What somebody's code has thrown, in words; it may be anything, also what has none. */
export function thrownText(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown)
  } catch {
    return 'something that cannot be looked at'
  }
}
