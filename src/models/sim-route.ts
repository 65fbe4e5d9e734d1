/** How a request of simulated agents came here. It travels in the text of the request, so that a simulated agent needs no memory to stop. */
export interface Route {
  /** Who asked whom, down to this agent; without those who have answered. */
  readonly path: readonly string[]
  /** Everybody who was asked so far. */
  readonly known: readonly string[]
  /** How often it was begun, because it had come to where nobody new could be asked and nothing be ended. */
  readonly round: number
}

/** Marks every text that no model has written. */
export const simulated = '[simulated]'

const written = /\(path: ([\w-]+(?: > [\w-]+)*); known: ([\w-]+(?:, [\w-]+)*); round (\d+)\)/

export const hasRoute = (request: string): boolean => written.test(request)

/** The route in a request, or the one that begins here. */
export function routeIn(request: string, agent: string): Route {
  const [, path = '', known = '', round = '1'] = written.exec(request) ?? []
  if (path === '') return { path: [agent], known: [agent], round: 1 }
  const names = path.split(' > ')
  // Agents that are code pass requests on as they like: the path ends here, whatever it says.
  return {
    path: names.at(-1) === agent ? names : [...names, agent],
    known: [...new Set([...known.split(', '), agent])],
    round: Number(round),
  }
}

/** The route on to a target: deeper, or back to somebody who is on it. */
export function routeTo({ path, known, round }: Route, target: string, others: readonly string[]): Route {
  const at = path.indexOf(target)
  return { path: at === -1 ? [...path, target] : path.slice(0, at + 1), known: [...new Set([...known, ...others])], round }
}

export function routeText({ path, known, round }: Route): string {
  return `(path: ${path.join(' > ')}; known: ${known.join(', ')}; round ${round})`
}

/** What a text is about, in a few words: marks, routes and what simulated agents said around it are left out. */
export function topicOf(text: string, length = 120): string {
  const bare = text
    .replace(written, '')
    .replaceAll(simulated, '')
    .replace(/^[\s"]*[\w-]+ (?:asks|answers|hands over to) [\w-]+: /, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
  return bare.length > length ? `${bare.slice(0, length)}…` : bare
}
