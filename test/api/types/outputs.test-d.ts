import { z } from 'zod'
import { graph, type Topology, open, topology } from 'tutti'
import { expectTypeOf } from 'vitest'

const tutti = await open()
const flows = ['Start -> H', 'H -> A | B', 'A | B -> End'] as const

// a list has what each finish said
const numbers = topology({ name: 'numbers', output: z.number(), flows, result: 'list',
  agents: { H: (t) => t.fork(['A', 'B']), A: (t) => t.finish(1), B: (t) => t.finish(2) } })
expectTypeOf(numbers).toEqualTypeOf<Topology<unknown, readonly number[], 'H' | 'A' | 'B'>>()
expectTypeOf(await tutti.execute(numbers)).toEqualTypeOf<readonly number[]>()
const each = topology({ name: 'each', flows, result: 'list',
  agents: { H: (t) => t.fork(['A', 'B']), A: { output: z.number(), act: (t) => t.finish(1) }, B: { output: z.string(), act: (t) => t.finish('2') } } })
expectTypeOf(await tutti.execute(each)).toEqualTypeOf<readonly (number | string)[]>()
// one finish is itself, and a function gives what it returns
const one = topology({ name: 'one', output: z.number(), flows: ['Start -> A -> End'], agents: { A: (t) => t.finish(1) } })
expectTypeOf(await tutti.execute(one)).toEqualTypeOf<number>()
const made = topology({ name: 'made', output: z.number(), flows, result: (all) => ({ sum: all.reduce((n, { output }) => n + output, 0) }),
  agents: { H: (t) => t.fork(['A', 'B']), A: (t) => t.finish(1), B: (t) => t.finish(2) } })
expectTypeOf(await tutti.execute(made)).toEqualTypeOf<{ sum: number }>()
// no result is one finish, also where it is said
const said = topology({ name: 'said', output: z.number(), flows: ['Start -> A -> End'], result: undefined as never, agents: { A: (t) => t.finish(1) } })
expectTypeOf(await tutti.execute(said)).toEqualTypeOf<number>()
// @ts-expect-error there is no such result
topology({ name: 'x', flows: ['Start -> A -> End'], result: 'all', agents: { A: (t) => t.finish(1) } })

// the output of a graph is what its schema gives, whatever makes it
const Sum = z.object({ a: z.number().transform(String) })
const steps = graph('steps', { output: Sum }).step('a', { run: () => 1 })
expectTypeOf(await tutti.execute(steps.output())).toEqualTypeOf<{ a: string }>()
expectTypeOf(await tutti.execute(steps.output(({ steps }) => ({ a: steps.a + 1 })))).toEqualTypeOf<{ a: string }>()
const child = graph('parent').step('child', { run: steps.output() }).step('read', { after: ['child'], run: ({ steps }) => steps.child.a.length })
expectTypeOf(await tutti.execute(child.output(({ steps }) => steps.read))).toEqualTypeOf<number>()
// whoever names the input alone still gives a schema for the output, and has what is made
const named = graph<{ n: number }>('named', { output: z.object({ s: z.number() }) }).step('s', { run: () => 1 }).output()
expectTypeOf(await tutti.execute(named, { input: { n: 1 } })).toEqualTypeOf<{ readonly s: number }>()

// what undoes a step of a list is given its item, as the step itself was
const listed = graph('listed').step('book', { each: () => [{ city: 'Bern' }], run: ({ item }) => item.city.length,
  compensate: ({ item, output }) => expectTypeOf([item.city, output] as const).toEqualTypeOf<readonly [string, number]>() })
// @ts-expect-error a step with no list has no item
listed.step('pay', { run: () => 1, compensate: ({ item }) => item.city })
