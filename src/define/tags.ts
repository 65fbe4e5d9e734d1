/** Labels of a run, to find it by. */
export type Tags = Readonly<Record<string, string>>
