import type { LanguageModelV2, LanguageModelV3 } from '@ai-sdk/provider'

/** Any language model of the AI SDK. */
export type LanguageModel = LanguageModelV2 | LanguageModelV3 | LanguageModelV4

/** Structural, because the package that declares it wants Node 22. */
interface LanguageModelV4 {
  readonly specificationVersion: 'v4'
  readonly provider: string
  readonly modelId: string
  doGenerate(options: any): PromiseLike<any>
  doStream(options: any): PromiseLike<any>
}
