import { type Inside, type Markup, style, tag } from './markup.js'
import { type Colour, colour, themeCss } from './theme.js'
import { fitted, textWidth } from './text-size.js'

/** A drawing: what is in it, how large it is, and what it says to those who can't see it. */
export interface Drawing {
  readonly width: number
  readonly height: number
  readonly title: string
  readonly description: string
  readonly body: Inside
}

/** Patterns that fill what waits and what was given up; they scale with nothing, so that narrow bars still show them. */
const patterns: Markup = tag(
  'defs',
  {},
  ...(['wait', 'person', 'bad', 'undo', 'dim'] as const).map((name) =>
    tag(
      'pattern',
      { id: `tutti-hatch-${name}`, width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
      tag('rect', { width: 6, height: 6, fill: colour(name), 'fill-opacity': 0.16 }),
      tag('line', { x1: 0, y1: 0, x2: 0, y2: 6, stroke: colour(name), 'stroke-width': 2.4 }),
    ),
  ),
)

export type Hatch = 'wait' | 'person' | 'bad' | 'undo' | 'dim'

/** A fill of stripes. */
export const hatched = (name: Hatch): string => `url(#tutti-hatch-${name})`

/** The drawing as an element that can stand in a page that has the theme. */
export function svgElement({ width, height, title, description, body }: Drawing, ...head: readonly Inside[]): Markup {
  return tag(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      class: 'tutti',
      viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
      width: Math.ceil(width),
      height: Math.ceil(height),
      role: 'img',
    },
    tag('title', {}, title),
    tag('desc', {}, description),
    head,
    patterns,
    tag('rect', { width: '100%', height: '100%', fill: colour('ground') }),
    body,
  )
}

/** The drawing as a file of its own: it refers to nothing outside, runs nothing, and is dark or light as its reader is. */
export function svgFile(drawing: Drawing): string {
  return `${svgElement(drawing, style(themeCss)).markup}\n`
}

export interface TextStyle {
  readonly size?: number
  readonly fill?: Colour
  readonly anchor?: 'start' | 'middle' | 'end'
  readonly weight?: 400 | 600
  readonly italic?: boolean
  /** Text that would be wider is cut, and says itself in full when pointed at. */
  readonly max?: number
}

/** A line of text with its base line at `y`. */
export function label(
  x: number,
  y: number,
  text: string,
  { size = 12, fill = 'text', anchor, weight, italic, max }: TextStyle = {},
): Markup {
  const cut = max === undefined ? text : fitted(text, max, (part) => textWidth(part, size, weight === 600))
  return tag(
    'text',
    {
      x,
      y,
      'font-size': size,
      fill: colour(fill),
      'text-anchor': anchor === 'start' ? undefined : anchor,
      'font-weight': weight,
      'font-style': italic === true ? 'italic' : undefined,
      'xml:space': 'preserve',
    },
    cut === text ? null : tag('title', {}, text),
    cut,
  )
}
