const uuids = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi

/** The ids in a text that may have been drawn at random. Most texts have none, and that is seen at once. */
export const idsIn = (text: string): readonly string[] => (text.includes('-') ? (text.match(uuids) ?? []) : [])

/** Which of the ids of an outcome were drawn at random. */
export type DrawnIds = (ids: ReadonlySet<string>) => Promise<ReadonlySet<string>>

/** Ids that somebody drew at random are named by where they first appear. */
export function canonical(text: string, random: ReadonlySet<string>): string {
  if (random.size === 0) return text
  const names = new Map<string, string>()
  return text.replace(uuids, (id) => {
    if (!random.has(id)) return id
    const name = names.get(id) ?? `uuid-${names.size + 1}`
    names.set(id, name)
    return name
  })
}

/** The same where what appears first is a matter of order. */
export const nameless = (text: string, random: ReadonlySet<string>): string =>
  random.size === 0 ? text : text.replace(uuids, (id) => (random.has(id) ? 'uuid' : id))

/** A text without its ids, where only a hash of it is kept: they are told beside that. */
export const withoutIds = (text: string): string => (text.includes('-') ? text.replace(uuids, 'uuid') : text)
