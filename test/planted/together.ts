import type { Definition } from 'tutti'
import { graph, topology } from 'tutti'

/** Who is at work is kept in a variable that all share, across an await of a plain promise. */
function mixingUp(): (turn: any) => Promise<any> {
  let current = ''
  return async (turn) => {
    current = turn.agent
    await Promise.resolve()
    return turn.reply(current)
  }
}

/** What was counted is looked at before an await of a plain promise, and written after it. */
function losing(): { readonly add: () => Promise<null>; readonly count: () => number } {
  let count = 0
  const add = async (): Promise<null> => {
    const seen = count
    await Promise.resolve()
    count = seen + 1
    return null
  }
  return { add, count: () => count }
}

const forking = (...calls: readonly string[]) => ({
  act: { request: (turn: any) => turn.fork(calls), join: (turn: any, { values }: any) => turn.finish(values) },
})

/** Bodies that go on in one macrotask of the engine, though no commit has started them together. */
export const together: Readonly<Record<string, () => Definition<any>>> = {
  'turns that two turns have called': () => {
    const act = mixingUp()
    return topology({
      name: 'called',
      flows: ['Start -> H -> End', 'H -> A | B', 'A -> C', 'B -> D', 'C | D -> H'],
      agents: { H: forking('A', 'B'), A: (turn) => turn.invoke('C'), B: (turn) => turn.invoke('D'), C: { act }, D: { act } },
    })
  },
  'turns after joins': () => {
    const act = mixingUp()
    const waiting = (call: string) => ({ act: { request: (turn: any) => turn.fork([call]), join: act } })
    return topology({
      name: 'joined',
      flows: ['Start -> H -> End', 'H <-> A | B', 'A <-> X', 'B <-> Y'],
      agents: { H: forking('A', 'B'), A: waiting('X'), B: waiting('Y'), X: (turn) => turn.reply(1), Y: (turn) => turn.reply(1) },
    })
  },
  'steps that wait for different steps': () => {
    const { add, count } = losing()
    return graph('waiting')
      .step('a', { run: () => 1 })
      .step('b', { run: () => 1 })
      .step('afterA', { after: ['a'], run: add })
      .step('afterB', { after: ['b'], run: add })
      .step('count', { after: ['afterA', 'afterB'], run: count })
      .output()
  },
  'what steps have recorded': () => {
    const { add, count } = losing()
    const run = async (step: any) => {
      await step.step('think', () => 1)
      return add()
    }
    return graph('recorded')
      .step('a', { run })
      .step('b', { run })
      .step('count', { after: ['a', 'b'], run: count })
      .output()
  },
}
