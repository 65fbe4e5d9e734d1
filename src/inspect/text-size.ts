/** How much room text takes, as far as that can be known without a screen; a little generous, so that nothing overlaps. */

/** Takes no room of its own: it is drawn on the character before it. */
const combining = /^[\p{M}\u200C\u200D]$/u
/** Twice as wide as a letter: ideographs, kana, hangul, full-width forms, emoji. */
const wide =
  /^[\u1100-\u115F\u2E80-\u303E\u3041-\u33FF\u3400-\u4DBF\u4E00-\u9FFF\uA000-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{1F300}-\u{1FAFF}\u{20000}-\u{3FFFD}]$/u

/** The cells that one character takes on a terminal. */
function cellsOf(character: string): number {
  if (combining.test(character)) return 0
  return wide.test(character) ? 2 : 1
}

/** The cells that a text takes on a terminal. */
export function cells(text: string): number {
  let sum = 0
  for (const character of text) sum += cellsOf(character)
  return sum
}

/** How much wider bold text is. */
const boldFactor = 1.12

/** The width of a text in pixels, in a sans-serif font of that size. */
export function textWidth(text: string, fontPx: number, bold = false): number {
  let sum = 0
  for (const character of text) sum += emOf(character)
  return sum * fontPx * (bold ? boldFactor : 1)
}

function emOf(character: string): number {
  const taken = cellsOf(character)
  if (taken !== 1) return taken / 1.9
  if (/[iljtfr.,:;|!'`()[\] ]/.test(character)) return 0.36
  if (/[mwMW@%—→]/.test(character)) return 0.96
  return /[A-Z#&]/.test(character) ? 0.72 : 0.61
}

/** The text, cut with an ellipsis where it would take more than `max` of what `size` measures. */
export function fitted(text: string, max: number, size: (text: string) => number): string {
  if (size(text) <= max) return text
  const room = max - size('…')
  let kept = ''
  let taken = 0
  for (const character of text) {
    taken += size(character)
    if (taken > room) break
    kept += character
  }
  return room < 0 ? '' : `${kept}…`
}

/** The text in exactly `width` cells of a terminal: cut or filled up. */
export function padded(text: string, width: number): string {
  const cut = fitted(text, width, cells)
  return cut + ' '.repeat(Math.max(0, width - cells(cut)))
}

/** The text in lines of at most `max` of what `size` measures, broken between words where it can be. */
export function brokenText(text: string, max: number, size: (text: string) => number): string[] {
  return inLines(text.split(' '), max, size)
}

/** Parts in as few lines as they need; each stays in one piece, and is cut only if it is longer than a line. */
export function inLines(parts: readonly string[], max: number, size: (text: string) => number, between = ' '): string[] {
  const lines: string[] = []
  for (const part of parts.map((one) => fitted(one, max, size))) {
    const last = lines.at(-1)
    const longer = last === undefined ? part : last + between + part
    if (last === undefined || size(longer) > max) lines.push(part)
    else lines[lines.length - 1] = longer
  }
  return lines
}
