/** The colours of every picture, by what they mean; shape and hatching say the same, for those who see no difference. */
const light = {
  ground: '#ffffff',
  panel: '#f5f6f8',
  line: '#dfe2e8',
  edge: '#8b93a1',
  text: '#1c2129',
  dim: '#626b79',
  turn: '#3f7fd6',
  good: '#2f9159',
  bad: '#cf3c3c',
  retry: '#c98712',
  person: '#8d5bc4',
  undo: '#0d8f8f',
  wait: '#aab2bf',
  path: '#11151b',
} as const

export type Colour = keyof typeof light

const dark: Readonly<Record<Colour, string>> = {
  ground: '#12151a',
  panel: '#1b1f27',
  line: '#2c323d',
  edge: '#7a8494',
  text: '#e5e8ee',
  dim: '#98a2b1',
  turn: '#5b96e8',
  good: '#4fb47c',
  bad: '#ee6a6a',
  retry: '#e2a63c',
  person: '#b288e6',
  undo: '#37b9b9',
  wait: '#5d6675',
  path: '#ffffff',
}

/** A colour as CSS takes it, light or dark as the reader has it. */
export const colour = (name: Colour): string => `var(--tutti-${name})`

function variables(colours: Readonly<Record<Colour, string>>): string {
  return Object.entries(colours)
    .map(([name, value]) => `--tutti-${name}:${value}`)
    .join(';')
}

/** The style that a picture carries with it. It follows what the reader has chosen for everything. */
export const themeCss: string = [
  `.tutti{${variables(light)};color-scheme:light dark;font-family:ui-sans-serif,system-ui,"Segoe UI",Helvetica,Arial,sans-serif}`,
  `@media (prefers-color-scheme:dark){.tutti{${variables(dark)}}}`,
].join('')

/** What each colour is on a terminal that has sixteen of them. */
const ansi: Readonly<Record<Colour, string>> = {
  ground: '30',
  panel: '90',
  line: '90',
  edge: '90',
  text: '39',
  dim: '90',
  turn: '34',
  good: '32',
  bad: '31',
  retry: '33',
  person: '35',
  undo: '36',
  wait: '90',
  path: '1',
}

/** Colours text for a terminal; the other one leaves it alone, for pipes and files. */
export type Paint = (text: string, ...colours: readonly Colour[]) => string

export const painted: Paint = (text, ...colours) =>
  text === '' || colours.length === 0 ? text : `\u001b[${colours.map((name) => ansi[name]).join(';')}m${text}\u001b[0m`

export const unpainted: Paint = (text) => text
