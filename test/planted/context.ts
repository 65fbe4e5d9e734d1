/** Shared mutable context: parallel steps write into one object, and the report is made from that. */
import { graph } from 'tutti'

interface Context {
  step_results: Record<string, string>
  agents_involved: string[]
  interactions: number
}

const work = (ctx: any, name: string): Promise<string> => ctx.step('work', () => `${name} is done`)

export function planted() {
  const context: Context = { step_results: {}, agents_involved: [], interactions: 0 }
  const run = (name: string) => async (ctx: any) => {
    const { interactions } = context
    const result = await work(ctx, name)
    context.step_results[name] = result
    context.agents_involved.push(name)
    context.interactions = interactions + 1
    return null
  }
  return graph('context')
    .step('build', { run: run('build') })
    .step('lint', { run: run('lint') })
    .step('report', { after: ['build', 'lint'], run: () => structuredClone(context) })
    .output(({ steps }) => steps.report)
}

export function corrected() {
  const run = (name: string) => async (ctx: any) => work(ctx, name)
  return graph('context')
    .step('build', { run: run('build') })
    .step('lint', { run: run('lint') })
    .step('report', {
      after: ['build', 'lint'],
      run: ({ steps }) => ({ step_results: { ...steps }, agents_involved: Object.keys(steps), interactions: Object.keys(steps).length }),
    })
    .output(({ steps }) => steps.report)
}
