import type { LanguageModel } from '../define/language-model.js'
import type { Maybe } from '../define/maybe.js'

/** Gives the model for an agent; undefined leaves the choice to the engine. */
export type ModelFactory = (ref: { agent: string; model?: LanguageModel | string }) => LanguageModel | undefined

/** A factory that may take its time: providers are loaded when they are needed. */
export type ModelSource = (ref: { agent: string; model?: LanguageModel | string }) => Maybe<LanguageModel | undefined>
