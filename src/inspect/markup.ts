import { xml } from './escape.js'

/**
 * SVG and HTML as they are built up. Only `tag` and `style` make one, and `tag` escapes every text and every attribute it is given, so a
 * name from a model can't become markup on any way through here.
 */
export interface Markup {
  readonly markup: string
}

/** What stands inside a tag; null and undefined are nothing. */
export type Inside = Markup | string | number | null | undefined | readonly Inside[]

export type Attributes = Readonly<Record<string, string | number | undefined>>

/** The tags of HTML that have no end. */
const empty: readonly string[] = ['meta', 'br', 'hr']

/** One element. Its name and the names of its attributes are ours, the rest is data. */
export function tag(name: string, attributes: Attributes = {}, ...inside: readonly Inside[]): Markup {
  let open = `<${name}`
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) open += ` ${key}="${xml(shown(value))}"`
  if (empty.includes(name)) return { markup: `${open}>` }
  const text = insideOf(inside)
  return { markup: `${open}>${text}</${name}>` }
}

/** A style sheet that we wrote: it can't be escaped, so nothing that we were given may be part of it. */
export function style(css: string): Markup {
  return { markup: `<style>${css.replaceAll('</', '')}</style>` }
}

function insideOf(inside: Inside): string {
  if (inside === null || inside === undefined) return ''
  if (typeof inside === 'string' || typeof inside === 'number') return xml(shown(inside))
  return 'markup' in inside ? inside.markup : inside.map(insideOf).join('')
}

/** Numbers with at most two decimals: a hundredth of a pixel is nothing to see, and files stay small. */
function shown(value: string | number): string {
  if (typeof value === 'string') return value
  return Number.isFinite(value) ? `${Math.round(value * 100) / 100}` : '0'
}
