/** A value as a model reads it: a text as it is, anything else as JSON. */
export function valueText(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
