/** An element as a strict reader finds it; texts are decoded. */
export interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly inside: (Element | string)[]
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', '#39': "'" }
const decoded = (text: string): string =>
  text.replace(/&([^;&]*);?/g, (whole, name: string) => {
    const found = whole.endsWith(';') ? entities[name] : undefined
    if (found === undefined) throw new Error(`no entity: ${whole}`)
    return found
  })

/** Reads SVG or HTML of ours and throws at anything that is not well-formed: an open tag, a stray <, an unquoted or repeated attribute. */
export function readMarkup(text: string): Element {
  const top: Element = { name: '', attributes: {}, inside: [] }
  const open = [top]
  const parts = /<!doctype html>|<\/([\w-]+)>|<([\w-]+)((?: [\w:-]+="[^"<>]*")*)>|([^<>]+)/gy
  for (let at = 0; at < text.length; at = parts.lastIndex) {
    parts.lastIndex = at
    const found = parts.exec(text)
    if (found === null) throw new Error(`not well-formed at ${JSON.stringify(text.slice(at, at + 60))}`)
    const [, closes, opens, given = '', words] = found
    const last = open.at(-1) as Element
    if (closes !== undefined) {
      if (last.name !== closes) throw new Error(`</${closes}> closes <${last.name}>`)
      open.pop()
    } else if (opens !== undefined) {
      const pairs = [...given.matchAll(/ ([\w:-]+)="([^"]*)"/g)].map(([, key = '', value = '']) => [key, decoded(value)] as const)
      if (new Set(pairs.map(([key]) => key)).size < pairs.length) throw new Error(`<${opens}> has an attribute twice`)
      const element: Element = { name: opens, attributes: Object.fromEntries(pairs), inside: [] }
      last.inside.push(element)
      if (opens !== 'meta') open.push(element)
    } else if (words !== undefined) last.inside.push(last.name === 'style' ? words : decoded(words))
  }
  if (open.length > 1) throw new Error(`<${open.at(-1)?.name}> is never closed`)
  const [root, ...rest] = top.inside.filter((part) => typeof part !== 'string' || part.trim() !== '')
  if (rest.length > 0 || root === undefined || typeof root === 'string') throw new Error('there is not exactly one element')
  return root
}

/** Every element, from the outside in. */
export function* elements(root: Element): Generator<Element> {
  yield root
  for (const part of root.inside) if (typeof part !== 'string') yield* elements(part)
}

/** All the text in it. */
export const textOf = (root: Element): string => root.inside.map((part) => (typeof part === 'string' ? part : textOf(part))).join(' ')
