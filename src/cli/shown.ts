import { plain, shortened } from '../inspect/escape.js'
import { cells, fitted } from '../inspect/text-size.js'
import type { Colour } from '../inspect/theme.js'

/** Text that a terminal may be given: a piece of it with its colours, or several pieces. Only this file makes any. */
export type Shown = { readonly text: string; readonly colours: readonly Colour[] } | readonly Shown[]

/** A line for a terminal. What is put into it is escaped, unless it was made by one of these functions. */
export function shown(parts: TemplateStringsArray, ...values: readonly (Shown | string | number)[]): Shown {
  return parts.flatMap((part, index): Shown[] => {
    const value = values[index]
    const fixed = { text: part, colours: [] }
    return value === undefined ? [fixed] : [fixed, typeof value === 'object' ? value : escaped(String(value))]
  })
}

/** Text from anywhere, as one piece of one line. */
export function escaped(text: string, ...colours: readonly Colour[]): Shown {
  return { text: plain(text), colours }
}

/** Text from anywhere that is the data itself: it keeps its lines and its tabs, which steer nothing. */
export function text(of: string): Shown {
  const parts = of.split(/(\r?\n|\t)/).map((part, index) => (index % 2 === 0 ? plain(part) : part))
  return { text: parts.join(''), colours: [] }
}

/** A value from anywhere, as JSON, cut when it is long. */
export function value(of: unknown, lengthMax = 200): Shown {
  return escaped(of === undefined ? '' : shortened(JSON.stringify(of), lengthMax), 'text')
}

/** Several lines that were escaped where they were made, such as a report or a drawing. */
export function drawn(text: string): Shown {
  return { text: text.replace(/\n$/, ''), colours: [] }
}

/** How many cells of a terminal it takes. */
function widthOf(line: Shown): number {
  return cells(
    pieces(line)
      .map(({ text }) => text)
      .join(''),
  )
}

/** A line cut to a width, with its colours. */
export function cut(line: Shown, width: number): Shown {
  let left = width
  return pieces(line).flatMap((piece): Shown[] => {
    const text = left > 0 ? fitted(piece.text, left, cells) : ''
    left = text === piece.text ? left - cells(text) : 0
    return text === '' ? [] : [{ ...piece, text }]
  })
}

type Piece = Exclude<Shown, readonly Shown[]>

export function pieces(line: Shown): readonly Piece[] {
  return isList(line) ? line.flatMap(pieces) : [line]
}

function isList(line: Shown): line is readonly Shown[] {
  return Array.isArray(line)
}

/** Lines with their cells one below the other; nothing hangs out at their ends. */
export function table(rows: readonly (readonly Shown[])[]): Shown[] {
  const widths: number[] = []
  for (const row of rows) for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, widthOf(cell))
  return rows.map((row) => {
    const last = row.findLastIndex((cell) => widthOf(cell) > 0)
    return row.slice(0, last + 1).map((cell, index): Shown => {
      if (index === last) return cell
      return [cell, { text: ' '.repeat((widths[index] ?? 0) - widthOf(cell) + 2), colours: [] }]
    })
  })
}
