/** A part of an answer, or of the stream of one, of any version of the specification, as far as it is looked at. */
export interface AnyPart {
  readonly type: string
  readonly [key: string]: unknown
}

/** How an answer ends. */
export interface AnswerEnd {
  readonly finishReason: unknown
  readonly usage: unknown
  readonly providerMetadata?: unknown
}

export const noAnswer = (): Error => new Error('what it answers is no answer of a model of the AI SDK, version 5 or later')

/** A part comes from outside, and may be anything. */
export const isPart = (part: unknown): boolean => typeof part === 'object' && part !== null

/** The words of a part: what is no text has none. */
export const wordsOf = (text: unknown): string => (typeof text === 'string' ? text : '')

/** The stream of an answer that is all there: text word by word, as people watch it. */
export function streamParts(content: readonly AnyPart[], end: AnswerEnd): AnyPart[] {
  const parts = content.flatMap((part, index) =>
    isPart(part) && (part.type === 'text' || part.type === 'reasoning') ? deltas(part.type, part, `${part.type}-${index}`) : [part],
  )
  return [{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', ...end }]
}

function deltas(type: string, { text, providerMetadata }: AnyPart, id: string): AnyPart[] {
  const words = wordsOf(text).match(/\S*\s*/g) ?? []
  const meta = providerMetadata === undefined ? {} : { providerMetadata }
  return [
    { type: `${type}-start`, id },
    ...words.filter((word) => word !== '').map((delta) => ({ type: `${type}-delta`, id, delta })),
    { type: `${type}-end`, id, ...meta },
  ]
}

/** Puts an answer together from the parts of its stream, as they come. */
export class AnswerFromStream {
  readonly #content: AnyPart[] = []
  readonly #open: Map<string, { type: string; text: string; providerMetadata?: unknown }> = new Map()
  #end: AnswerEnd | null = null
  #broken = false

  /** Throws for what is no part. */
  add(part: AnyPart): void {
    if (!isPart(part)) throw noAnswer()
    const [, type = '', step] = /^(text|reasoning)-(start|delta|end)$/.exec(part.type) ?? []
    if (step !== undefined) this.#addText(type, step, part)
    else if (part.type === 'error') this.#broken = true
    else if (part.type === 'finish') this.#end = part as unknown as AnswerEnd
    else if (part.type === 'tool-call' || part.type === 'tool-result' || part.type === 'file' || part.type === 'source')
      this.#content.push(part)
  }

  /** What there is of it, whether its end has come or not. */
  get soFar(): AnswerEnd & { readonly content: readonly AnyPart[] } {
    return { finishReason: undefined, usage: undefined, ...this.#end, content: this.#content }
  }

  /** null as long as the end has not come, and for ever if an error has. */
  get answer(): (AnswerEnd & { readonly content: readonly AnyPart[] }) | null {
    return this.#end === null || this.#broken ? null : this.soFar
  }

  #addText(type: string, step: string, part: AnyPart): void {
    const key = `${type}/${String(part['id'])}`
    const block = this.#open.get(key) ?? { type, text: '' }
    if (!this.#open.has(key)) {
      this.#open.set(key, block)
      this.#content.push(block)
    }
    if (step === 'delta') block.text += wordsOf(part['delta'])
    if (part['providerMetadata'] !== undefined) block.providerMetadata = part['providerMetadata']
    if (step === 'end') this.#open.delete(key)
  }
}
