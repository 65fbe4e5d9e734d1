import type { AgentCode } from '../define/agent-code.js'
import type { TopologyInternals } from '../define/definition.js'
import { jsonSchemaOf } from '../define/json-schema.js'
import type { Schema } from '../define/schema.js'
import { coordination } from './coordination.js'
import { embedded } from './embedded-schema.js'
import { argumentsSchema } from './tool-arguments.js'
import type { OwnTools } from './toolboxes.js'

/** Where a model sits in its topology, as its branch is now. */
export interface ModelSeat {
  readonly agent: AgentCode
  readonly definition: TopologyInternals
  /** Whom it has an edge to, and whether that is a notify edge. */
  readonly targets: ReadonlyMap<string, boolean>
  /** Who waits for this branch's reply. */
  readonly waiting: string | null
  /** What an invoke of an agent is held to. */
  schemaOf(to: string): Schema | undefined
}

/** A tool as every provider takes it. */
export interface OfferedTool {
  readonly type: 'function'
  readonly name: string
  readonly description: string
  readonly inputSchema: object
}

/** What a model may do: exactly what would be accepted. */
export interface Offers {
  readonly seat: ModelSeat
  /** The agents it may invoke. */
  readonly agents: readonly string[]
  readonly mayFinish: boolean
  readonly mayAsk: boolean
  /** What prose with no call comes to: a reply if somebody waits and the edge is there, else the end of the run. */
  readonly prose: 'reply' | 'finish' | null
  /** What that must be. */
  readonly proseSchema: Schema | undefined
  readonly own: OwnTools
  readonly tools: readonly OfferedTool[]
}

const anything: object = {}

export function offersOf(seat: ModelSeat, own: OwnTools): Offers {
  const { agent, definition, targets, waiting } = seat
  const agents = [...targets.keys()].filter((name) => name !== 'End' && name !== 'User')
  const mayFinish = targets.has('End')
  const mayAsk = targets.has('User')
  const finishSchema = definition.output ?? agent.output
  const replies = waiting !== null && targets.has(waiting)
  const prose = replies ? 'reply' : mayFinish ? 'finish' : null
  const tools = [
    ...(agents.length > 0 ? [invokeTool(seat, agents)] : []),
    ...(mayFinish ? [finishTool(finishSchema)] : []),
    ...(mayAsk ? [askTool] : []),
    ...[...own].map(([name, { description, input }]) => offered(name, description, argumentsSchema(input))),
  ]
  const proseSchema = replies ? seat.schemaOf(waiting) : finishSchema
  return { seat, agents, mayFinish, mayAsk, prose, proseSchema, own, tools }
}

const offered = (name: string, description: string, inputSchema: object): OfferedTool => ({
  type: 'function',
  name,
  description,
  inputSchema,
})

const objectOf = (properties: Readonly<Record<string, object>>, required: readonly string[]): object => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

const freeRequest: object = { description: 'What is asked of it, with all that it needs to know: text or JSON.' }

/** One form of an invocation for all agents, or one for each kind of request. */
function invokeTool(seat: ModelSeat, agents: readonly string[]): OfferedTool {
  const { waiting, targets } = seat
  const schemaOf = (name: string): object | undefined => jsonSchemaOf(seat.schemaOf(name))
  const free = agents.filter((name) => schemaOf(name) === undefined)
  const wanted = [
    ...(free.length > 0 ? [{ names: free, schema: freeRequest }] : []),
    ...agents.flatMap((name) => {
      const schema = schemaOf(name)
      return schema === undefined ? [] : [{ names: [name], schema }]
    }),
  ]
  const forms = wanted.map(({ names, schema }, place) => {
    const form = wanted.length === 1 ? '' : `/anyOf/${place}`
    return invocation(names, embedded(schema, `#/properties/invocations/items${form}/properties/request`))
  })
  const notes = [
    waiting !== null && targets.get(waiting) === false ? `${waiting} waits for your reply: invoking it is your reply.` : '',
    ...agents.filter((name) => targets.get(name) === true).map((name) => `${name} is only notified: it does not answer.`),
  ].filter((note) => note !== '')
  const description = [
    'Hands work to other agents. One invocation goes on there; several run at the same time, and you are given all results together.',
    ...notes,
  ].join(' ')
  const items = forms.length === 1 ? (forms[0] ?? anything) : { anyOf: forms }
  return offered(coordination.invoke, description, objectOf({ invocations: { type: 'array', minItems: 1, items } }, ['invocations']))
}

const invocation = (names: readonly string[], request: object): object =>
  objectOf({ agent_name: { type: 'string', enum: names }, request }, ['agent_name', 'request'])

function finishTool(schema: Schema | undefined): OfferedTool {
  const output = embedded(jsonSchemaOf(schema) ?? { description: 'The result: text or JSON.' }, '#/properties/output')
  return offered(coordination.finish, 'Ends the work with its result.', objectOf({ output }, ['output']))
}

const askTool: OfferedTool = offered(
  coordination.ask,
  'Asks a person, and waits for the answer.',
  objectOf({ question: { type: 'string' } }, ['question']),
)

/** What the model may do, in words: it is what feedback says. */
export function allowedText({ agents, mayFinish, mayAsk, own }: Offers): string {
  const may = [
    ...(agents.length > 0 ? [`${coordination.invoke} with ${agents.join(', ')}`] : []),
    ...(mayFinish ? [coordination.finish] : []),
    ...(mayAsk ? [coordination.ask] : []),
    ...own.keys(),
  ]
  return `Allowed are: ${may.join('; ')}`
}
