/** What a record has under a name that people have chosen: what every object inherits, as `toString`, is not in it. */
export function own<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined
}
