/**
 * How text from agents, people and files reaches a reader. All of it is data: what could steer a terminal, close a tag or hide something
 * from the eye is made visible here, and nowhere else.
 */

/** Cut before anything is escaped, so that no escape is cut in two, and never inside a character. */
export function shortened(text: string, lengthMax = 200): string {
  if (text.length <= lengthMax) return text
  const kept = text.slice(0, lengthMax).replace(/[\uD800-\uDBFF]$/, '')
  return `${kept}… (${text.length - kept.length} characters more)`
}

/**
 * What would do something to a terminal or hide something from a reader instead of being seen: control characters (and with them every
 * ANSI escape), line breaks, marks that turn the direction of writing, halves of characters, and the two that XML has no place for.
 * Joiners are left: scripts and emoji need them.
 */
const unseen = /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\uFFFE\uFFFF]/gu

const shortForms: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Text for a terminal or a log: one line of what can be seen. */
export function plain(text: string): string {
  return text.replace(unseen, (found) => shortForms[found] ?? `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`)
}

const entities: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;', "'": '&#39;' }

/** Text that Markdown shows as it is. HTML goes by entities, because not every renderer knows `\<`. */
export function marked(text: string): string {
  return plain(text).replace(/[\\`*_[\]|~$<>&]/g, (found) => entities[found] ?? `\\${found}`)
}

/** Text inside an element or a quoted attribute of SVG or HTML. Both refuse most control characters even as entities, so they are spelt out. */
export function xml(text: string): string {
  return plain(text).replace(/[<>&"']/g, (found) => entities[found] ?? '')
}
