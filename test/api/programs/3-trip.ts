import { z } from 'zod'
import { graph, resource, type Done, type Graph, type Resource, type StepContext } from 'tutti'

export interface Trip {
  city: string
  nights: number
}
export interface Booking {
  ref: string
  cents: number
}
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

export const trip: Graph<Trip, { receipt: string; car?: string | undefined }> = graph('trip', {
  input: z.object({ city: z.string(), nights: z.number() }),
})
  .step('flight', { ...book('flight'), retry: { attempts: 4 } })
  .step('hotel', book('hotel'))
  .step('car', { ...book('car'), onError: 'skip' })
  .step('pay', {
    after: ['flight', 'hotel'],
    run: ({ steps, use, idempotencyKey }) => use(desk).charge(steps.flight.cents + steps.hotel.cents, idempotencyKey),
  })
  .output(({ steps }) => ({ receipt: steps.pay, car: steps.car?.ref })) // car may be skipped, so `?.` is demanded
