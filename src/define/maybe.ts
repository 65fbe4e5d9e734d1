/** What user code may give at once or later. */
export type Maybe<T> = T | Promise<T>
