/** What is compared of an outcome: all of it, but what was drawn at random. */
import { runInNewContext } from 'node:vm'
import { type Definition, graph, resource, topology } from 'tutti'
import { explore } from 'tutti/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'

const books = resource<any>('books')
const resources = () => [books.of({ save: () => {}, query: () => {}, fetch: () => {} })]

/** Two agents that do this, and what they have left behind. */
const two = (write: (turn: any, left: string[]) => unknown) => () => {
  const left: string[] = []
  const act = (turn: any) => {
    write(turn, left)
    return turn.reply(null)
  }
  return topology({
    name: 'two',
    flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
    agents: {
      Hub: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn) => turn.finish(left) } },
      A: { act },
      B: { act },
    },
  })
}

const checkOf = (write: (turn: any, left: string[]) => unknown) => explore(two(write), { schedules: 'all', resources })

const given: Readonly<Record<string, string>> = {
  A: '6f1c1a0e-53a8-4a35-9c5f-0c8f0d5a9b01',
  B: '0b8f4a77-2f0f-4d6e-8f43-5a1f2f7c6d02',
}

test('ids that a workflow is given are compared; only those drawn at random are named by where they appear', async () => {
  const inOrder = await checkOf((turn, left) => left.push(given[turn.agent] ?? ''))
  expect(inOrder.divergence?.kind, inOrder.text()).toBe('output')
  const last = await checkOf((turn, left) => (left[0] = given[turn.agent] ?? ''))
  expect(last.divergence?.kind, last.text()).toBe('output')
  const drawn = await checkOf((_, left) => left.push(crypto.randomUUID()))
  expect(drawn, drawn.text()).toMatchObject({ independent: true, exhaustive: true })
})

test('ids that were drawn at random are no difference in what resources are called with either', async () => {
  const drawn = await checkOf((turn) => turn.use(books).save(crypto.randomUUID(), { by: turn.agent }))
  expect(drawn, drawn.text()).toMatchObject({ independent: true, exhaustive: true })
  const same = await checkOf((turn) => turn.use(books).save(given['A'], { by: turn.agent, id: crypto.randomUUID() }))
  expect(same.divergence?.kind, same.text()).toBe('effect-order')
})

test('who writes last to what has been given an id at random is a matter of order', async () => {
  const shared = (idsOf: (id: string, who: string) => string) => () => {
    const act = (turn: any) => {
      turn.use(books).save(idsOf(turn.request, turn.agent), { by: turn.agent })
      return turn.reply(null)
    }
    return topology({
      name: 'shared',
      flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
      agents: {
        Hub: {
          act: { request: (turn: any) => turn.fork(['A', 'B'], { request: crypto.randomUUID() }), join: (turn: any) => turn.finish() },
        },
        A: { act },
        B: { act },
      },
    })
  }
  const one = await explore(
    shared((id) => id),
    { schedules: 'all', resources },
  )
  expect(one.divergence?.kind, one.text()).toBe('effect-order')
  const each = await explore(
    shared((id, who) => `${id}/${who}`),
    { schedules: 'all', resources },
  )
  expect(each, each.text()).toMatchObject({ independent: true, exhaustive: true })
})

test('ids that were drawn at random are no difference in what a model is told, and others are one', async () => {
  const told = (idOf: (turn: any, before: number) => string) => () => {
    let before = 0
    const act = async (turn: any) => turn.invoke('Model', { ids: await turn.step('ids', () => [idOf(turn, before++), idOf(turn, before)]) })
    return topology({
      name: 'told',
      flows: ['Start -> Hub -> End', 'Hub -> A | B -> Model -> Hub'],
      agents: {
        Hub: { act: { request: (turn: any) => turn.fork(['A', 'B']), join: (turn: any) => turn.finish() } },
        A: { act },
        B: { act },
        Model: {},
      },
    })
  }
  const drawn = await explore(
    told(() => crypto.randomUUID()),
    { schedules: 100 },
  )
  expect(drawn.independent, drawn.text()).toBe(true)
  const first = await explore(
    told((_, before) => (before === 0 ? given['A'] : given['B']) ?? ''),
    { schedules: 100 },
  )
  expect(first.divergence?.kind, first.text()).toBe('output')
})

test('ids that only a model is told are compared as well', async () => {
  const told = (idOf: (before: number) => string) => () => {
    let before = 0
    const model = { instructions: () => `Write to ${idOf(before++)}.` }
    return topology({
      name: 'told',
      flows: ['Start -> Hub -> End', 'Hub <-> A | B'],
      agents: {
        Hub: { act: { request: (turn: any) => turn.fork(['A', 'B']), join: (turn: any) => turn.finish() } },
        A: model,
        B: model,
      },
    })
  }
  const first = await explore(
    told((before) => (before === 0 ? given['A'] : given['B']) ?? ''),
    { schedules: 100 },
  )
  expect(first.divergence?.kind, first.text()).toBe('prompt')
  const drawn = await explore(
    told(() => crypto.randomUUID()),
    { schedules: 100 },
  )
  expect(drawn.independent, drawn.text()).toBe(true)
})

test('all that a resource is called with is compared, however long it is, and shown where it differs', async () => {
  const long = 'long '.repeat(100)
  const found = await checkOf((turn, left) => turn.use(books).save(turn.agent, { long, place: left.push(turn.agent) }))
  expect(found.divergence?.kind, found.text()).toBe('effect-count')
  expect(found.text()).toContain('"place":1')
  expect(found.text()).toContain('"place":2')
  for (const kept of [(place: number) => new Map([['place', place]]), (place: number) => new Set([place]), BigInt]) {
    const compared = await checkOf((turn, left) => turn.use(books).save(turn.agent, { kept: kept(left.push(turn.agent)) }))
    expect(compared.divergence?.kind, compared.text()).toBe('effect-count')
  }
})

test('long outputs are shown where they differ', async () => {
  const long = 'long '.repeat(100)
  const found = await checkOf((turn, left) => (left[0] = `${left[0] ?? long}${turn.agent}`))
  expect(found.text()).toContain('long AB"')
  expect(found.text()).toContain('long BA"')
})

test('a query that writes and a fetch that sends are effects, those that only look are none', async () => {
  const written = await checkOf((turn) => turn.use(books).query('UPDATE books SET owner = $1', [turn.agent]))
  expect(written.divergence?.kind, written.text()).toBe('effect-order')
  const looked = await checkOf((turn) => turn.use(books).query('SELECT owner FROM books WHERE owner = $1', [turn.agent]))
  expect(looked, looked.text()).toMatchObject({ independent: true, exhaustive: true })
  const sent = await checkOf((turn) => turn.use(books).fetch('/books', { method: 'POST', body: turn.agent }))
  expect(sent.divergence?.kind, sent.text()).toBe('effect-order')
  const fetched = await checkOf((turn) => turn.use(books).fetch('/books', { headers: { from: turn.agent } }))
  expect(fetched, fetched.text()).toMatchObject({ independent: true, exhaustive: true })
})

test('what a query or a fetch is given in one object says what it does, and a query what it does behind comments and tables of its own', async () => {
  const writes = [
    { text: 'UPDATE books SET owner = $1' },
    { sql: 'UPDATE books SET owner = $1' },
    '-- the owner\nUPDATE books SET owner = $1',
    '/* the\n owner */ WITH one AS (SELECT 1) UPDATE books SET owner = $1',
  ]
  for (const query of writes) {
    const written = await checkOf((turn) => turn.use(books).query(query, [turn.agent]))
    expect(written.divergence?.kind, written.text()).toBe('effect-order')
  }
  const looked = await checkOf((turn) => turn.use(books).query('WITH one AS (SELECT 1) SELECT owner FROM books', [turn.agent]))
  expect(looked, looked.text()).toMatchObject({ independent: true, exhaustive: true })
  const page = 'https://example.com/books'
  const sent = await checkOf((turn) => turn.use(books).fetch(new Request(page, { method: 'POST', headers: { by: turn.agent } })))
  expect(sent.divergence?.kind, sent.text()).toBe('effect-order')
  const fetched = await checkOf((turn) => turn.use(books).fetch(new Request(page, { headers: { by: turn.agent } })))
  expect(fetched, fetched.text()).toMatchObject({ independent: true, exhaustive: true })
})

test('a query behind a line of dashes and many comments is looked at as fast as any', async () => {
  const banner = `-- ${'-'.repeat(76)}\n${'/* of books */ '.repeat(40)}\n`
  const looked = await checkOf((turn) => turn.use(books).query(`${banner}SELECT owner FROM books`, [turn.agent]))
  expect(looked, looked.text()).toMatchObject({ independent: true, exhaustive: true })
  const written = await checkOf((turn) => turn.use(books).query(`${banner}UPDATE books SET owner = $1`, [turn.agent]))
  expect(written.divergence?.kind, written.text()).toBe('effect-order')
})

test('what a call was about is named in full where its order differs, whatever stands in it', async () => {
  const written = await checkOf((turn) => turn.use(books).query('UPDATE books\n  SET note = $1 -- note: who was last', [turn.agent]))
  expect(written.text()).toContain('calls to books query UPDATE books SET note = $1 -- note: who was last\n')
})

test('what a call is about is known of addresses and large numbers too', async () => {
  for (const about of [() => new URL('https://example.com/books/1'), () => 1n]) {
    const saved = await checkOf((turn) => turn.use(books).save(about(), turn.agent))
    expect(saved.divergence?.kind, saved.text()).toBe('effect-order')
  }
})

test('what a resource is called with is compared where JSON has no form for it, or it leads back to itself', async () => {
  const leadingBack = (of: string): object => {
    const one = { of, itself: {} }
    one.itself = one
    return one
  }
  const values: readonly ((of: string) => unknown)[] = [
    (of) => ({ at: of === 'A' ? Number.NaN : Number.POSITIVE_INFINITY }),
    (of) => new Error(of),
    (of) => runInNewContext(`new Map([['of', '${of}']])`),
    (of) => new Headers({ of }),
    (of) => new URLSearchParams({ of }),
    (of) => new TextEncoder().encode(of).buffer,
    leadingBack,
    (of) => new Error('out', { cause: leadingBack(of) }),
    (of) => {
      const all = new Map<string, unknown>([['of', of]])
      return all.set('itself', { all })
    },
  ]
  for (const valueOf of values) {
    const saved = await checkOf((turn) => turn.use(books).save('it', valueOf(turn.agent)))
    expect(saved.divergence?.kind, saved.text()).toBe('effect-order')
  }
})

test('a list in the output whose order is of no matter is none where else it is told of either', async () => {
  const bags = ['output']
  const finished = two((turn, left) => left.push(turn.agent))
  expect((await explore(finished, { schedules: 'all' })).independent).toBe(false)
  const ofAgent = await explore(finished, { schedules: 'all', bags })
  expect(ofAgent, ofAgent.text()).toMatchObject({ independent: true, exhaustive: true })
  const rows = await explore(
    two((turn, left: unknown[]) => left.push({ id: crypto.randomUUID(), of: turn.agent })),
    { schedules: 'all', bags },
  )
  expect(rows, rows.text()).toMatchObject({ independent: true, exhaustive: true })
  const steps = () => {
    const left: string[] = []
    const leave = (who: string) => () => {
      left.push(who)
      return null
    }
    return graph('steps')
      .step('a', { run: leave('a') })
      .step('b', { run: leave('b') })
      .step('left', { after: ['a', 'b'], run: () => left })
      .output()
  }
  const ofStep = await explore(steps, { schedules: 'all', bags: ['output.left'] })
  expect(ofStep, ofStep.text()).toMatchObject({ independent: true, exhaustive: true })
})

/** What is asked for is written by one step while another goes on; the answer is the same whatever is asked. */
function approval(nested: boolean): Definition<unknown, unknown> {
  let price = 1
  const steps = graph('approval')
    .step('offer', { run: ({ step }) => step('offer', () => void (price = 2)) })
    .step('check', { run: ({ step }) => step('check', () => null) })
    .ask('approve', { after: ['check'], question: () => `${price} euros?`, schema: z.boolean() })
    .output()
  return nested
    ? graph('outer')
        .step('inner', { run: steps, input: () => undefined })
        .output()
    : steps
}

test.each([false, true])('what a person is asked is compared, where no agent is shown it either (in a child run: %s)', async (nested) => {
  const found = await explore(() => approval(nested), { answers: () => true })
  expect(found.divergence?.kind, found.text()).toBe('prompt')
  expect(found.text()).toContain('euros?')
})
