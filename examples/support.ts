// A support desk: agents hand a customer on to each other until one of them can help; nobody is called back.
import { type Provided, type Resource, resource, topology } from 'tutti'
import { z } from 'zod'
import { isMain, play } from './play.js'

const Order = z.object({ id: z.string(), cents: z.number() })

/** The shop's books. */
interface Books {
  orders(): Promise<z.infer<typeof Order>[]>
  refund(order: string, key: string): Promise<void>
}
const books: Resource<Books> = resource<Books>('books')

const support = topology({
  name: 'support',
  input: z.string(),
  output: z.string(),
  // A swarm: each may hand over to the others, ask the customer, and finish.
  flows: ['Start -> Triage', 'Triage <-> Billing | Tech', 'Billing <-> Tech', 'Triage | Billing | Tech -> User | End'],
  rules: ['max_turns(40)'],
  // What the customer has said travels with the branch, so that nobody asks twice.
  state: (said) => ({ said: [said] }),
  merge: { said: 'last' },
  agents: {
    Triage: {
      act: {
        request: (turn) =>
          /crash|login|error/i.test(turn.state.said.join(' ')) ? turn.invoke('Tech') : turn.ask('What can we do for you?'),
        answer: (turn, answer) =>
          turn.invoke(/pay|refund|charged/i.test(String(answer)) ? 'Billing' : 'Tech', undefined, {
            state: { said: [...turn.state.said, String(answer)] },
          }),
      },
    },
    Tech: {
      act: {
        request: (turn) => turn.ask('Does it work when you sign out and in again?'),
        // It works again, but the customer was charged twice: that is for somebody else.
        answer: (turn, answer) => {
          const state = { said: [...turn.state.said, String(answer)] }
          return /charged/i.test(String(answer)) ? turn.invoke('Billing', undefined, { state }) : turn.finish('Glad to help.')
        },
      },
    },
    Billing: {
      answer: z.boolean(),
      act: {
        request: async (turn) => {
          const orders = await turn.step('orders', ({ use }) => use(books).orders())
          const twice = orders.find(({ cents }, index) => orders.some((other, at) => at < index && other.cents === cents))
          return twice === undefined ? turn.invoke('Triage') : turn.ask({ refund: twice })
        },
        answer: async (turn, yes, ask) => {
          if (!yes) return turn.finish('Nothing was refunded.')
          const { refund } = ask.question as { refund: z.infer<typeof Order> }
          await turn.step('refund', ({ use, idempotencyKey }) => use(books).refund(refund.id, idempotencyKey))
          return turn.finish(`${refund.id} is refunded: ${refund.cents / 100} euros.`)
        },
      },
    },
  },
})

export default support

export const resources: readonly Provided[] = [
  books.of({
    orders: async () => [
      { id: 'order-1', cents: 4_900 },
      { id: 'order-2', cents: 4_900 },
    ],
    refund: async (order, key) => console.log(`${'books'.padEnd(14)}refund ${order}${key === '' ? '' : ', once'}`),
  }),
]

const customer: Readonly<Record<string, unknown>> = {
  Tech: 'Yes! But I was charged twice.',
  Billing: true,
  Triage: 'I want my money back: a refund.',
}

if (isMain(import.meta.url))
  await play(support, { input: 'The app shows an error at login.', resources, answer: ({ agent }) => customer[agent] })
