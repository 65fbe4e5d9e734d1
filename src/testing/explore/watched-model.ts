import { createHash } from 'node:crypto'
import type { LanguageModel } from '../../define/language-model.js'
import { placeOf } from '../../models/call-place.js'
import { idsIn, withoutIds } from './random-ids.js'
import { within } from './setting.js'

/** What a model was shown, and where: what it was told is known by its hash, and by the ids in it. */
export interface Prompt {
  readonly run: string
  readonly branch: string
  readonly agent: string
  readonly line: string
}

/** A model that does what it did, and tells what it is shown; `own`: the run that is played. */
export function watchedModel(model: LanguageModel, own: string, agent: string, show: (prompt: Prompt) => void): LanguageModel {
  const note = (options: Call): void => {
    const { run = own, branch = '', turn = 0, call = 0 } = placeOf(options as never) ?? {}
    const { prompt, tools, maxOutputTokens } = options
    const text = JSON.stringify([prompt, tools, maxOutputTokens])
    const hash = createHash('sha256').update(withoutIds(text)).digest('hex').slice(0, 16)
    show({
      run,
      branch,
      agent,
      line: `${within(run.slice(own.length))}the prompt of ${agent} on ${branch}/${turn}, call ${call}: ${[hash, ...idsIn(text)].join(' ')}`,
    })
  }
  return new Proxy(model, {
    get: (target, property) => {
      const found: unknown = Reflect.get(target, property, target)
      if (typeof found !== 'function') return found
      return (...args: readonly unknown[]): unknown => {
        const [options] = args
        if ((property === 'doGenerate' || property === 'doStream') && isCall(options)) note(options)
        return Reflect.apply(found as (...args: readonly unknown[]) => unknown, target, args)
      }
    },
  })
}

/** What a model is told: what was said, what it may call, and how long its answer may be. */
interface Call {
  readonly prompt: unknown
  readonly tools?: unknown
  readonly maxOutputTokens?: unknown
}

const isCall = (value: unknown): value is Call => typeof value === 'object' && value !== null && 'prompt' in value
