/**
 * How many bytes of JSON a value has, if they are more than a limit; null if they are not. Each byte of an estimate (`toJson`, `jsonSize`)
 * is at most six of JSON, as of a control character, and at least a fifth of one, as of a digit: only where that leaves it open, it is measured.
 */
export function bytesOver(max: number, estimate: number, value: unknown): number | null {
  if (estimate * 6 <= max) return null
  const bytes = estimate > max * 5 ? estimate : Buffer.byteLength(JSON.stringify(value) ?? '')
  return bytes > max ? bytes : null
}
