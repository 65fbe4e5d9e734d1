/** A time as text; one that no calendar has is shown as the number it is. */
export function timeText(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? `${at}` : date.toISOString()
}
