import { agent, graph, topology, type Act, type Agent } from 'tutti'
import { z } from 'zod'

// of code in a file of its own it is enough to say what is not as it comes
const flows = ['Start -> A', 'A -> B', 'B -> End'] as const
const b: Act<typeof flows, 'B', { input: number; output: string }> = (t) => t.finish(String(t.request + 1))
topology({ name: 'b', flows, agents: { A: (t) => t.invoke('B', 1), B: { input: z.number(), output: z.string(), act: b } } })
// @ts-expect-error what is said is held to
const wrong: Act<typeof flows, 'B', { input: number }> = (t) => t.finish(t.request.length)
void wrong

// an agent that is a step is sent what its schema takes, not what that makes of it
const num = agent({ name: 'Num', input: z.string().transform(Number), output: z.number(), act: (t) => t.finish(t.request + 1) })
const told = agent({ name: 'Told', input: z.object({ q: z.string(), n: z.number().default(3) }), output: z.number(), act: (t) => t.finish(t.request.n) })
graph('sent').step('num', { input: () => '5', run: num }).step('told', { input: () => ({ q: 'x' }), run: told })
// @ts-expect-error a number is what its schema makes
graph('sent').step('num', { input: () => 5, run: num })
// @ts-expect-error q is not there
graph('sent').step('told', { input: () => ({}), run: told })
// @ts-expect-error it needs a request
graph('sent').step('told', { run: told })
graph('sent').step('free', { run: agent({ name: 'Free', act: (t) => t.finish(1) }) }).step('any', { input: () => 1, run: agent({ name: 'Any', model: 'sim' }) })
// a name for its type that says what arrives is enough
const named: Agent<'Told', { q: string; n: number }, number> = told
graph('sent').step('told', { input: () => ({ q: 'x', n: 1 }), run: named })
