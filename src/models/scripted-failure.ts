/** The names by which the AI SDK knows its errors, whoever made them. */
const marks = ['vercel.ai.error', 'vercel.ai.error.AI_APICallError'].map((mark) => Symbol.for(mark))

/** An error as a provider throws it when the server refuses; made by hand, because the package that declares it need not be there. */
export class ScriptedFailure extends Error {
  override readonly name: string = 'AI_APICallError'
  readonly url: string = 'script:'
  readonly requestBodyValues: object = {}
  readonly statusCode: number
  readonly isRetryable: boolean
  readonly responseHeaders: Readonly<Record<string, string>>

  constructor({ status, retryAfterMs }: { readonly status: number; readonly retryAfterMs?: number }) {
    super(`the script says ${status}`)
    this.statusCode = status
    this.isRetryable = status === 408 || status === 409 || status === 429 || status >= 500
    this.responseHeaders = retryAfterMs === undefined ? {} : { 'retry-after-ms': String(retryAfterMs) }
    for (const mark of marks) Object.defineProperty(this, mark, { value: true })
  }
}
