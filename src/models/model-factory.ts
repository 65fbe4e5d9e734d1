import type { LanguageModel } from '../define/language-model.js'

/** Gives the model for an agent; undefined leaves the choice to the engine. */
export type ModelFactory = (ref: { agent: string; model?: LanguageModel | string }) => LanguageModel | undefined
