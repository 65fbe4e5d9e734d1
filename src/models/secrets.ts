import type { LanguageModel } from '../define/language-model.js'
import { isLater } from '../define/maybe.js'
import type { Environment } from './model-choice.js'

/** A secret, and what is shown in its place. */
export type Secret = readonly [name: string, value: string]

/** Short ones are words that stand everywhere. */
const secretMin = 8

const isSecret = /KEY|TOKEN|SECRET|PASSWORD/i

/** What the environment calls a key, a token, a secret or a password. */
export function secretsOf(env: Environment): readonly Secret[] {
  return secretsIn(Object.entries(env).filter(([name]) => isSecret.test(name)))
}

/**
 * What a model sends to be known by. Who makes a provider of the AI SDK gives it a key that stands in no environment; its models have their headers
 * in their settings. Of a model that shows none nobody can tell.
 */
export function secretsSentBy(model: LanguageModel | null): readonly Secret[] {
  try {
    const { config } = (model ?? {}) as { readonly config?: { readonly headers?: unknown } }
    const sent = typeof config?.headers === 'function' ? (config as { headers(): unknown }).headers() : config?.headers
    if (isLater(sent)) void Promise.resolve(sent).catch(() => {})
    return isLater(sent) ? [] : secretsIn(headerParts(sent ?? {}).filter(([name]) => isSecret.test(name) || /AUTH|COOKIE/i.test(name)))
  } catch {
    // It has no key to show: that is why it failed.
    return []
  }
}

/** What headers hold: a header may have a word before its key. */
export function headerParts(headers: object): readonly (readonly [name: string, part: string])[] {
  return Object.entries(headers).flatMap(([name, value]: [string, unknown]) =>
    typeof value === 'string' ? [value, ...value.split(/\s+/)].map((part) => [name, part] as const) : [],
  )
}

/** Those of some values that are long enough to be told apart from words. */
export function secretsIn(values: readonly (readonly [name: string, value: string | undefined])[]): readonly Secret[] {
  const found = values.flatMap(([name, value = '']): Secret[] => (value.length < secretMin ? [] : [[name, value]]))
  // The longest first: of one that another begins with, the rest would be left.
  return found.sort(([, a], [, b]) => b.length - a.length)
}

/** A text with the names of secrets in their place, also where they stand in JSON or in an address. */
export function withoutSecrets(text: string, secrets: readonly Secret[]): string {
  return secrets.reduce((rest, [name, value]) => formsOf(value).reduce((left, form) => left.replaceAll(form, `[${name}]`), rest), text)
}

/** Half a character, which has no place in an address, is written as one that is unknown. */
const formsOf = (value: string): readonly string[] => [
  value,
  JSON.stringify(value).slice(1, -1),
  encodeURIComponent(Buffer.from(value).toString()),
]

/**
 * What somebody else says of a request may repeat what was sent with it, whoever knows that key: what looks like one is not shown either. `sent` is
 * what is known to have been sent. What is known goes first: of a key that only begins as others do, the rest would be left.
 */
export function withoutKeys(text: string, env: Environment, sent: readonly Secret[]): string {
  return withoutSecrets(withoutSecrets(text, secretsOf(env)), sent)
    .replaceAll(/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, '$1 […]')
    .replaceAll(/\bsk-[\w-]{8,}/g, '[…]')
}
