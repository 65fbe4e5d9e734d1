import { type Topology, topology } from 'tutti'

/** So many that the order of their names, or of a hash, is another one than that of their fork. */
export const askers: readonly string[] = Array.from({ length: 12 }, (_, index) => `A${index}`)

/** A fork of agents that all ask a person at one moment. */
export const askingAtOnce = topology({
  name: 'many',
  flows: ['Start -> Hub -> End', `Hub <-> ${askers.join(' | ')}`, ...askers.map((name) => `${name} -> User`)],
  agents: {
    Hub: { act: { request: (turn: any) => turn.fork(askers), join: (turn: any) => turn.finish() } },
    ...Object.fromEntries(askers.map((name) => [name, (turn: any) => turn.ask('well?')])),
  },
} as never) as Topology<unknown, unknown>
