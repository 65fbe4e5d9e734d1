/** How long something took, in the two largest units that say it. */
export function durationText(ms: number): string {
  if (!(ms > 0)) return '0 ms'
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${trimmed(ms / 1_000)} s`
  if (ms < 3_600_000) return pair(ms, 60_000, 'min', 1_000, 's')
  if (ms < 86_400_000) return pair(ms, 3_600_000, 'h', 60_000, 'min')
  return pair(ms, 86_400_000, 'd', 3_600_000, 'h')
}

const trimmed = (value: number): string => `${Math.round(value * 10) / 10}`

function pair(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const whole = Math.floor(ms / large)
  const rest = Math.floor((ms - whole * large) / small)
  return rest === 0 ? `${whole} ${largeName}` : `${whole} ${largeName} ${rest} ${smallName}`
}
