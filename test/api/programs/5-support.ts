import { z } from 'zod'
import { resource, tool, topology, type Resource, type Topology } from 'tutti'

export interface Customer {
  id: string
  plan: 'free' | 'pro'
}
export interface Db {
  orders(customer: string): Promise<{ id: string; cents: number }[]>
  refund(order: string, key: string): Promise<void>
}
export const db: Resource<Db> = resource<Db>('db')
export const customer: Resource<Customer> = resource<Customer>('customer')

const orders = tool({
  description: "The customer's orders.",
  input: z.object({}),
  idempotent: true,
  run: (_, { use }) => use(db).orders(use(customer).id),
})
const refund = tool({
  description: 'Refund one order.',
  input: z.object({ order: z.string(), cents: z.number() }),
  needsApproval: ({ cents }) => cents > 5_000,
  run: ({ order }, { use, idempotencyKey }) => use(db).refund(order, idempotencyKey),
})

export const support: Topology<string, unknown, 'Triage' | 'Billing' | 'Tech'> = topology({
  name: 'support',
  input: z.string(),
  flows: ['Start -> Triage', 'Triage <-> Billing | Tech', 'Billing <-> Tech', 'Triage | Billing | Tech -> User | End'],
  rules: ['max_turns(40)'],
  agents: {
    Triage: { instructions: (turn) => `Route the customer (${turn.use(customer).plan}). Hand over; never guess.`, memory: 'session' },
    Billing: { instructions: 'Solve billing questions.', memory: 'session', tools: { orders, refund } },
    Tech: { instructions: 'Solve technical questions.', memory: 'session', concurrency: 20 },
  },
})
