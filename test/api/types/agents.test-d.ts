import { agent, graph, type Agent } from 'tutti'
import { z } from 'zod'

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
