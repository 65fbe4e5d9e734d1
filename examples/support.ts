// A support desk of language models: they hand a customer on to each other until one can help, and a large refund waits for a person.
// What the models say is a script here, so that it runs with no key. Leave `models` out, set OPENAI_API_KEY, and they are real.
import { type ModelFactory, type Provided, type Resource, resource, tool, topology } from 'tutti'
import { script } from 'tutti/testing'
import { z } from 'zod'
import { isMain, play } from './play.js'

interface Order {
  readonly id: string
  readonly cents: number
}

/** The shop's books. */
interface Books {
  orders(): Promise<readonly Order[]>
  refund(order: string, key: string): Promise<string>
}
const books: Resource<Books> = resource<Books>('books')

const orders = tool({
  description: "The customer's orders.",
  input: z.object({}),
  idempotent: true,
  run: (_, { use }) => use(books).orders(),
})

const refund = tool({
  description: 'Refund one order.',
  input: z.object({ order: z.string(), cents: z.number() }),
  needsApproval: ({ cents }) => cents > 2_000, // the run waits, for days if need be, until somebody says yes or no
  run: ({ order }, { use, idempotencyKey }) => use(books).refund(order, idempotencyKey),
})

const support = topology({
  name: 'support',
  input: z.string(),
  // A swarm: each may hand over to the others, ask the customer, and finish. What has no edge is not even offered to a model.
  flows: ['Start -> Triage', 'Triage <-> Billing | Tech', 'Billing <-> Tech', 'Triage | Billing | Tech -> User | End'],
  rules: ['max_turns(40)'],
  agents: {
    Triage: { instructions: 'Find out who can help, and hand over. Never guess.' },
    Tech: { instructions: 'Solve technical questions. Money is for Billing.' },
    Billing: { instructions: 'Solve questions about money.', tools: { orders, refund } },
  },
})

export default support

export const models: ModelFactory = script<typeof support>({
  Triage: [{ invoke: 'Tech', request: 'An error at login.' }],
  Tech: [
    { ask: 'Does it work when you sign out and in again?' },
    { invoke: 'Billing', request: 'Login works again, but it was charged twice.' },
  ],
  Billing: [
    { tool: 'orders', input: {} },
    { tool: 'refund', input: { order: 'order-2', cents: 4_900 } },
    { finish: 'order-2 is refunded: 49 euros.' },
  ],
})

export const resources: readonly Provided[] = [
  books.of({
    orders: async () => [
      { id: 'order-1', cents: 4_900 },
      { id: 'order-2', cents: 4_900 },
    ],
    refund: async (order) => {
      console.log(`${'books'.padEnd(14)}refund ${order}`)
      return `${order} is refunded`
    },
  }),
]

if (isMain(import.meta.url))
  await play(support, {
    input: 'The app shows an error at login.',
    resources,
    models,
    answer: (ask) => (ask.kind === 'approval' ? true : 'Yes! But I was charged twice.'),
  })
