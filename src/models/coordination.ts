import { actionTools } from '../define/tool.js'

/**
 * The tools by which a model acts in its topology. A model is offered exactly those that its edges allow:
 *
 * - `invoke_agent({ invocations: [{ agent_name, request }] })`: one is an invoke, several are a fork; who waits is answered by it too. With
 *   `fork: true` beside them any number is a fork, also none: scripts say it, and no model is told of it;
 * - `finish({ output })`: with an edge to End;
 * - `ask_user({ question })`: with an edge to User.
 */
export const coordination: typeof actionTools = actionTools

const names: readonly string[] = Object.values(coordination)

/** Whether a tool is one of those by which a model acts, offered or not. */
export function isCoordination(tool: string): boolean {
  return names.includes(tool)
}
