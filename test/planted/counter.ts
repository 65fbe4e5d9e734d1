/** Three parallel steps add to one variable: in one go, or with an await in the middle. */
import { graph } from 'tutti'

export function counting(how: 'at once' | 'across an await' | 'across a step') {
  let n = 0
  const one = async (): Promise<number> => 1
  const run = async (ctx: any) => {
    if (how === 'at once') n += 1
    if (how === 'across an await') n += await one()
    if (how === 'across a step') n += await ctx.step('one', one)
    return null
  }
  return graph('counter')
    .step('a', { run })
    .step('b', { run })
    .step('c', { run })
    .step('sum', { after: ['a', 'b', 'c'], run: () => n })
    .output(({ steps }) => steps.sum)
}
