// A trip is booked in one piece or not at all: when paying fails, what was booked is given back, in the right order and once.
import { type Done, graph, type Provided, type Resource, resource, type StepContext } from 'tutti'
import { z } from 'zod'
import { isMain, play } from './play.js'

interface Trip {
  city: string
  nights: number
}
interface Booking {
  ref: string
  cents: number
}

/** The travel agency. Each call takes a key, so that one that is repeated after a crash is not a second booking. */
export interface Desk {
  book(kind: string, trip: Trip, key: string): Promise<Booking>
  cancel(ref: string, key: string): Promise<void>
  charge(cents: number, key: string): Promise<string>
}
export const desk: Resource<Desk> = resource<Desk>('desk')

const book = (kind: string) => ({
  run: ({ input, use, idempotencyKey }: StepContext<Trip, {}>) => use(desk).book(kind, input, idempotencyKey),
  compensate: ({ output, use, idempotencyKey }: Done<Booking>) => use(desk).cancel(output.ref, idempotencyKey),
})

const trip = graph('trip', { input: z.object({ city: z.string(), nights: z.number() }) })
  .step('flight', { ...book('flight'), retry: { attempts: 3, backoffMs: 20 } })
  .step('hotel', book('hotel'))
  .step('car', { ...book('car'), onError: 'skip' })
  .step('pay', {
    after: ['flight', 'hotel'],
    run: ({ steps, use, idempotencyKey }) => use(desk).charge(steps.flight.cents + steps.hotel.cents, idempotencyKey),
  })
  .output(({ steps }) => ({ receipt: steps.pay, car: steps.car?.ref })) // the car may be skipped, so `?.` is demanded

export default trip

const took = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The flight line is busy once, there is no car, and the card is declined. */
function agency(): Desk {
  let busy = true
  return {
    book: async (kind, { city }) => {
      await took(kind === 'flight' ? 70 : 110)
      if (kind === 'flight' && busy) {
        busy = false
        throw new Error('the line is busy')
      }
      if (kind === 'car') throw new Error('there is no car left')
      console.log(`${'desk'.padEnd(14)}${kind} to ${city} is booked`)
      return { ref: `${kind}-1`, cents: kind === 'flight' ? 30_000 : 45_000 }
    },
    cancel: async (ref) => {
      await took(ref === 'hotel-1' ? 90 : 60)
      console.log(`${'desk'.padEnd(14)}${ref} is cancelled`)
    },
    charge: async (cents) => {
      await took(40)
      throw new Error(`the card is declined: ${cents / 100} euros`)
    },
  }
}

export const resources: readonly Provided[] = [desk.of(agency())]

if (isMain(import.meta.url)) await play(trip, { input: { city: 'Lisbon', nights: 3 }, resources })
