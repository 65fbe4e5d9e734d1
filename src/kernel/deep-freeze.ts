/** Freezes JSON and all that is in it; what is frozen is taken to be so all the way down. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  // Without a list of what is in it: there are many, and most are small.
  for (const key in value) {
    const item = value[key]
    if (typeof item === 'object' && item !== null) deepFreeze(item)
  }
  return Object.freeze(value)
}
