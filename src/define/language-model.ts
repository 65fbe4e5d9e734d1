/**
 * Any language model of the AI SDK. Structural, because the packages that declare them need not be there: what a call takes and gives is the
 * provider's matter, and what comes of it is looked at when it is there.
 */
export type LanguageModel = Linked<'v2'> | Linked<'v3'> | Model<'v4'>

interface Model<V extends string> {
  readonly specificationVersion: V
  readonly provider: string
  readonly modelId: string
  doGenerate(options: any): PromiseLike<any>
  doStream(options: any): PromiseLike<any>
}

interface Linked<V extends string> extends Model<V> {
  supportedUrls: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>
}
