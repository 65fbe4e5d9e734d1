/** A frozen record by names that people have chosen. It inherits nothing, so that a name like `toString` is only found if it is there. */
export function byName<T>(entries: Iterable<readonly [string, T]>): Readonly<Record<string, T>> {
  return Object.freeze(Object.assign(Object.create(null) as Record<string, T>, Object.fromEntries(entries)))
}
