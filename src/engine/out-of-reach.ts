import { TuttiError } from '../define/tutti-error.js'

/** Whether the store can't be asked now, and may be later: nothing is known of what it was asked for. */
export const isOutOfReach = (error: unknown): boolean => TuttiError.is(error, 'STORE_UNAVAILABLE') || TuttiError.is(error, 'STORE_LOCKED')

/** How long to wait before a store is tried again that was out of reach so many times in a row. */
export const waitFor = (failures: number): number => Math.min(1_000, 20 * 2 ** failures)
