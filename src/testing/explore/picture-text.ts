import { padded } from '../../inspect/text-size.js'
import type { Paint } from '../../inspect/theme.js'
import { unpainted } from '../../inspect/theme.js'
import { plain } from '../../inspect/escape.js'
import type { Picture } from './picture.js'

const widest = 26

/** A picture for a terminal: one line per step, one column per lane. */
export function pictureText({ lanes, rows }: Picture, paint: Paint = unpainted): string {
  const width = Math.max(8, Math.min(widest, Math.floor((110 - 6) / Math.max(1, lanes.length))))
  const lines = [paint(`      ${lanes.map((lane) => padded(plain(lane), width)).join('')}`.trimEnd(), 'dim')]
  for (const { step, gap, cells } of rows) {
    if (gap > 0) lines.push(paint(`      … ${gap} steps …`, 'dim'))
    const isRed = cells.some(({ red }) => red)
    let line = ''
    for (let lane = 0; lane < lanes.length; lane++) {
      const cell = cells.find((one) => one.lane === lane)
      const text = padded(cell === undefined ? '·' : plain(cell.text), width - 1)
      line += `${cell?.red ? paint(text, 'bad') : cell === undefined ? paint(text, 'dim') : text} `
    }
    lines.push(`${isRed ? paint('▶', 'bad') : ' '}${String(step).padStart(4)} ${line}`.trimEnd())
  }
  return lines.join('\n')
}
