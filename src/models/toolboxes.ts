import type { Options } from '../define/agent.js'
import { type ToolDefinition, toolDefinitionOf } from '../define/tool.js'
import { type OpenToolbox, toolboxDefinitionOf } from '../define/toolbox.js'
import { isCoordination } from './coordination.js'

/** The tools of an agent by the names that its model is offered. */
export type OwnTools = ReadonlyMap<string, Readonly<ToolDefinition<any, unknown>>>

/** What every provider takes as the name of a tool. */
const nameForm = /^[a-zA-Z0-9_-]{1,64}$/

/** The toolboxes that one engine has opened: each once, when somebody first needs it. They are closed with the engine. */
export class Toolboxes {
  readonly #open: Map<unknown, OpenToolbox> = new Map()

  /** All tools of an agent, those in its toolboxes as `<name of the box>_<name of the tool>`. */
  async toolsOf(tools: Options['tools']): Promise<OwnTools> {
    const all = new Map<string, Readonly<ToolDefinition<any, unknown>>>()
    for (const [name, entry] of Object.entries(tools ?? {})) {
      const own = toolDefinitionOf(entry)
      const found = own === undefined ? await this.#listed(name, entry) : [[name, own] as const]
      for (const [each, definition] of found) {
        if (all.has(each) || isCoordination(each)) throw new Error(`two tools are called ${each}: give the toolbox '${name}' another name`)
        all.set(each, definition)
      }
    }
    return all
  }

  async close(): Promise<void> {
    const open = [...this.#open.values()]
    this.#open.clear()
    await Promise.all(open.map((box) => box.close().catch(() => {})))
  }

  async #listed(name: string, entry: unknown): Promise<(readonly [string, Readonly<ToolDefinition<any, unknown>>])[]> {
    const definition = toolboxDefinitionOf(entry)
    if (definition === undefined) return []
    const box = this.#open.get(entry) ?? definition.open()
    this.#open.set(entry, box)
    return Object.entries(await box.list()).flatMap(([tool, made]) => {
      // What servers may call a tool is more than what providers take.
      const full = `${name}_${tool.replaceAll(/[./ :]/g, '_')}`
      if (!nameForm.test(full))
        throw new Error(`${definition.description} has a tool '${full.slice(0, 100)}': a name has at most 64 letters, digits, _ and -`)
      const own = toolDefinitionOf(made)
      return own === undefined ? [] : [[full, own] as const]
    })
  }
}
