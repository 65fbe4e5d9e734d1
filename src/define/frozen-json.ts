import { toJson } from '../kernel/json.js'

/** A deeply frozen copy of data that is known to be JSON. */
export function frozenJson<T>(data: T): T {
  const copied = toJson(data)
  if ('problem' in copied) throw new TypeError(`${copied.path}: ${copied.problem}`)
  return copied.value as T
}
