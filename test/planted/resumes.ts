/** Racing resumes: everybody looks whether the agent is paused before anybody writes that it is not. */
import { type Provided, type Resource, resource, topology } from 'tutti'

interface Registry {
  load(agent: string): Promise<string>
  save(agent: string, status: string): Promise<void>
  /** Writes only if it is still what was seen. */
  exchange(agent: string, seen: string, status: string): Promise<boolean>
  run(agent: string): void
}

const registry: Resource<Registry> = resource('registry')

/** A fresh registry with one paused agent. */
export function resources(): readonly Provided[] {
  const statuses = new Map([['Writer', 'paused']])
  return [
    registry.of({
      load: async (agent) => statuses.get(agent) ?? '',
      save: async (agent, status) => void statuses.set(agent, status),
      exchange: async (agent, seen, status) => statuses.get(agent) === seen && statuses.set(agent, status) !== undefined,
      run: () => {},
    }),
  ]
}

/** Whoever asks is told that it runs: that it was not this one who resumed it is no business of the outcome. */
function withResume(resume: (turn: any) => Promise<void>) {
  return topology({
    name: 'resumes',
    flows: ['Start -> Hub -> End', 'Hub <-> Resumer'],
    agents: {
      Hub: {
        act: {
          request: (turn) => turn.fork(['Resumer', 'Resumer']),
          join: (turn, join) => turn.finish(join.from('Resumer')),
        },
      },
      Resumer: { act: async (turn) => resume(turn).then(() => turn.reply('it runs')) },
    },
  })
}

export const planted = () =>
  withResume(async (turn) => {
    const agents = turn.use(registry)
    if ((await turn.step('look', () => agents.load('Writer'))) !== 'paused') return
    await turn.step('save', () => agents.save('Writer', 'running'))
    await turn.step('run', () => agents.run('Writer'))
  })

export const corrected = () =>
  withResume(async (turn) => {
    const agents = turn.use(registry)
    if (!(await turn.step('exchange', () => agents.exchange('Writer', 'paused', 'running')))) return
    await turn.step('run', () => agents.run('Writer'))
  })
