import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3FunctionTool, LanguageModelV3Message } from '@ai-sdk/provider'
import { digestOf } from '../define/digest.js'
import { seededUnit } from '../kernel/retry.js'
import { type CallPlace, placeOf } from './call-place.js'
import { coordination, isCoordination } from './coordination.js'
import { invokeForms } from './invoke-forms.js'
import { playingModel, type Said } from './playing-model.js'
import { type JsonSchema, sampleJson } from './sample-json.js'
import type { Filling } from './sample-text.js'
import { hasRoute, type Route, routeIn, routeText, routeTo, simulated, topicOf } from './sim-route.js'

/** How many tools one answer calls, and how many agents it asks: at the top, and below. */
const toolsMax = 8
const askedMax = { first: 8, later: 3 }
/** How far a branch comes, in turns and in forks within forks, before a request that tells no route has gone round in circles. */
const lostAfter = { turns: 24, forks: 3 }

/**
 * The model that plays when there is no other. It keeps nothing: what it says is a function of the agent's name and of the call, so the same
 * run says the same on every machine. It asks each agent that can answer once, uses each tool once, hands over where nobody answers, and
 * replies or finishes; its requests say who was asked already, so that it comes to an end in every topology that has one.
 */
export function simModel(agent: string): LanguageModelV3 {
  return playingModel('tutti', 'sim', (options) => play(sceneOf(agent, options)))
}

/** What one call shows. */
interface Scene {
  readonly agent: string
  readonly options: LanguageModelV3CallOptions
  readonly place: CallPlace | undefined
  readonly tools: ReadonlyMap<string, LanguageModelV3FunctionTool>
  readonly request: string
  readonly route: Route
  /** Since the request: what came of the calls, which agents were invoked, and how often the model was sent back. */
  readonly results: readonly Result[]
  readonly invoked: readonly string[]
  readonly refused: number
  readonly chance: () => number
}

interface Result {
  readonly tool: string
  /** undefined: it was refused, or went wrong. */
  readonly text?: string
}

function sceneOf(agent: string, options: LanguageModelV3CallOptions): Scene {
  const place = placeOf(options)
  const { prompt } = options
  const last = prompt.findLastIndex(({ role }) => role === 'user')
  const since = prompt.slice(last + 1)
  const request = place?.request === undefined ? textOf(prompt[last]) : asText(place.request)
  const isLost = isEndless(request, place)
  const turn = isLost ? { turn: place?.turn } : {}
  const seed = digestOf({ agent, prompt: JSON.stringify(prompt), call: place?.call ?? 0, ...turn })
  const results = since.flatMap(resultsOf)
  let draws = 0
  return {
    agent,
    options,
    place,
    tools: new Map((options.tools ?? []).flatMap((tool) => (tool.type === 'function' ? [[tool.name, tool] as const] : []))),
    request,
    route: { ...routeIn(request, agent), ...(isLost && { round: 2 }) },
    results,
    invoked: since.flatMap(invokedBy),
    refused:
      results.filter(({ tool, text }) => text === undefined && isCoordination(tool)).length + (since.length === 0 ? (place?.call ?? 0) : 0),
    chance: () => seededUnit(`${seed}/${draws++}`),
  }
}

/** Where no text can be said, as to who takes only a number, the route is lost: whoever is so far from the start looks for an end. */
function isEndless(request: string, place: CallPlace | undefined): boolean {
  if (place === undefined || hasRoute(request)) return false
  return place.turn > lostAfter.turns || place.branch.split('.').length > lostAfter.forks
}

/** What there is to do, best first; each time the model is sent back, it tries the next. */
function play(scene: Scene): Said {
  const tools = toolCalls(scene)
  if (tools.length > 0 && scene.refused === 0) return { text: `${simulated} ${scene.agent} looks that up.`, calls: tools }
  const ways = waysOn(scene)
  return ways[Math.min(scene.refused, ways.length - 1)] ?? prose(scene)
}

/** Each of the agent's own tools once per request, with arguments that its schema takes. */
function toolCalls(scene: Scene): { name: string; input: unknown }[] {
  const own = [...scene.tools.values()].filter(({ name }) => !isCoordination(name) && !scene.results.some(({ tool }) => tool === name))
  return own.slice(0, toolsMax).flatMap(({ name, inputSchema }) => {
    const input = sampleJson(inputSchema as JsonSchema, { chance: scene.chance, words: topicOf(scene.request) })
    return input === undefined ? [] : [{ name, input }]
  })
}

function waysOn(scene: Scene): Said[] {
  const { agent, place, route, tools, chance } = scene
  const targets = targetsOf(scene)
  const excluded = [...route.known, ...scene.invoked, place?.waiting, agent]
  const fresh = targets.filter((name) => !excluded.includes(name))
  const answers = (name: string) => place?.answering?.includes(name) ?? true
  const helpers = route.round > 1 ? [] : fresh.filter(answers).slice(0, route.path.length > 1 ? askedMax.later : askedMax.first)
  const heir = oneOf(
    fresh.filter((name) => route.round > 1 || !answers(name)),
    chance,
  )
  const back = route.path.slice(0, -1).findLast((name) => targets.includes(name))
  const others = targets.filter((name) => name !== agent)
  const again = oneOf(others, chance)
  const waits = typeof place?.waiting === 'string' && targets.includes(place.waiting)
  const on = [
    ...(helpers.length > 0 && !isDone(scene, coordination.invoke) ? [invoke(scene, 'asks', helpers)] : []),
    ...(heir === undefined ? [] : [invoke(scene, 'hands over to', [heir])]),
  ]
  const out = [...(waits ? [reply(scene, place.waiting)] : []), ...(tools.has(coordination.finish) ? [finish(scene)] : [])]
  const fallback = [
    ...(back === undefined ? [] : [invoke(scene, 'answers', [back])]),
    ...(tools.has(coordination.ask) && !isDone(scene, coordination.ask) ? [ask(scene)] : []),
    ...(again === undefined
      ? []
      : [invoke({ ...scene, route: { path: [agent], known: [agent], round: route.round + 1 } }, 'asks', [again])]),
    prose(scene),
  ]
  // Whoever has come round once without an end looks for one: nobody is asked to come back, and the first end that there is is taken.
  return route.round > 1 ? [...out, ...on, ...fallback] : [...on, ...out, ...fallback]
}

const oneOf = (names: readonly string[], chance: () => number): string | undefined => names[Math.floor(chance() * names.length)]

function ask(scene: Scene): Said {
  const question = `${simulated} ${scene.agent} asks: is this right? ${conclusion(scene)}`
  return { calls: [{ name: coordination.ask, input: { question } }] }
}

/** The names that `invoke_agent` takes: of one list, or of one form per agent. */
function targetsOf({ options }: Scene): string[] {
  return invokeForms(options.tools).flatMap(({ names }) => names)
}

function invoke(scene: Scene, verb: string, names: readonly string[]): Said {
  const tool = scene.tools.get(coordination.invoke)
  const forms = invokeForms(scene.options.tools)
  const about = isDone(scene, coordination.invoke) || verb !== 'asks' ? conclusion(scene) : topicOf(scene.request)
  const invocations = names.map((name) => {
    const words = `${simulated} ${scene.agent} ${verb} ${name}: ${about} ${routeText(routeTo(scene.route, name, names))}`
    const schema = forms.find((form) => form.names.includes(name))?.schema['properties']?.request as JsonSchema | undefined
    return { agent_name: name, request: sampled(schema, { chance: scene.chance, words }, tool?.inputSchema as JsonSchema) }
  })
  return {
    text: `${simulated} ${scene.agent} ${verb} ${names.join(', ')}.`,
    calls: [{ name: coordination.invoke, input: { invocations } }],
  }
}

function finish(scene: Scene): Said {
  const { inputSchema } = scene.tools.get(coordination.finish) ?? {}
  const schema = (inputSchema as Record<string, any> | undefined)?.['properties']?.output as JsonSchema | undefined
  const output = sampled(schema, { chance: scene.chance, words: `${simulated} ${conclusion(scene)}` }, inputSchema as JsonSchema)
  return { calls: [{ name: coordination.finish, input: { output } }] }
}

/** In words, as models reply, unless what is replied must have a form. */
function reply(scene: Scene, waiting: string): Said {
  const form = invokeForms(scene.options.tools).find(({ names }) => names.includes(waiting))?.schema['properties']?.request as object
  return Object.keys(form ?? {}).every((key) => key === 'description') ? prose(scene) : invoke(scene, 'answers', [waiting])
}

/** The end of a turn in words; in JSON where that is asked for. */
function prose(scene: Scene): Said {
  const words = `${simulated} ${conclusion(scene)}`
  const format = scene.options.responseFormat
  if (format?.type !== 'json') return { text: words }
  return { text: JSON.stringify(sampled(format.schema as JsonSchema | undefined, { chance: scene.chance, words })) }
}

function sampled(schema: JsonSchema | undefined, filling: Filling, root?: JsonSchema): unknown {
  // A schema that no value is known for is answered with words: the agent is told what is wrong with them.
  if (schema === undefined) return filling.words
  const value = sampleJson(schema, filling, root ?? schema)
  return value === undefined ? filling.words : value
}

function conclusion({ agent, request, results }: Scene): string {
  const texts = results.flatMap(({ text }) => (text === undefined ? [] : [topicOf(text, 200)]))
  if (texts.length === 0) return `${agent} has thought about: ${topicOf(request)}`
  return `${agent} has put together: ${texts.join(' | ')}`
}

const isDone = ({ results }: Scene, name: string): boolean => results.some(({ tool, text }) => tool === name && text !== undefined)

/** Of the result of a fork, what the agents said. */
function told(value: unknown): unknown {
  const { results } = (value ?? {}) as { results?: unknown }
  if (!Array.isArray(results)) return value
  const each = results as readonly { agent_name?: unknown; value?: unknown; status?: unknown }[]
  return each.map(({ agent_name, value: said, status }) => `${String(agent_name)}: ${topicOf(asText(said ?? status ?? ''))}`).join('; ')
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function textOf(message: LanguageModelV3Message | undefined): string {
  if (message === undefined) return ''
  if (typeof message.content === 'string') return message.content
  return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

function invokedBy(message: LanguageModelV3Message): string[] {
  if (message.role !== 'assistant') return []
  return message.content.flatMap((part) => {
    if (part.type !== 'tool-call' || part.toolName !== coordination.invoke) return []
    const { invocations } = part.input as { invocations?: readonly { agent_name?: string }[] }
    return (invocations ?? []).map(({ agent_name }) => agent_name ?? '')
  })
}

function resultsOf(message: LanguageModelV3Message): Result[] {
  if (message.role !== 'tool') return []
  return message.content.flatMap((part) => {
    if (part.type !== 'tool-result') return []
    const { output, toolName: tool } = part
    switch (output.type) {
      case 'text':
      case 'json':
      case 'content':
        return [{ tool, text: asText(told(output.value)) }]
      case 'error-text':
      case 'error-json':
      case 'execution-denied':
        return [{ tool }]
    }
  })
}
