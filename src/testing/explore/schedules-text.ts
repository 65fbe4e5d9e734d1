/** How many schedules, in words. */
export function schedulesText(count: number): string {
  return `${count} ${count === 1 ? 'schedule' : 'schedules'}`
}
