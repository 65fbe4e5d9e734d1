/** About how many tokens a value has as text; rather too many than too few. By its bytes: many scripts have a token or more in each character. */
export function estimatedTokens(value: unknown): number {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return Math.ceil(Buffer.byteLength(text) / 3)
}
