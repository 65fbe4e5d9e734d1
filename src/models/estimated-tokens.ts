/** About how many tokens a value has as text; rather too many than too few. */
export function estimatedTokens(value: unknown): number {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return Math.ceil(text.length / 3)
}
