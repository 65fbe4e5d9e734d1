import type { SqlValue } from './sqlite-driver.js'

/** A text as it is stored. One of the drivers cuts a text at NUL when it reads it, so such a one is stored as bytes. */
export function stored(text: string): SqlValue {
  return text.includes('\0') ? Buffer.from(text) : text
}

/** A stored text as it was. */
export function restored(value: SqlValue): string {
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString() : String(value)
}
