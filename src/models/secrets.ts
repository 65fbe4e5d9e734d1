import type { Environment } from './model-choice.js'

/** A secret, and what is shown in its place. */
export type Secret = readonly [name: string, value: string]

/** Short ones are words that stand everywhere. */
const secretMin = 8

/** What the environment calls a key, a token, a secret or a password. */
export function secretsOf(env: Environment): readonly Secret[] {
  return secretsIn(Object.entries(env).filter(([name]) => /KEY|TOKEN|SECRET|PASSWORD/i.test(name)))
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

/** What somebody else says of a request may repeat what was sent with it, whoever knows that key: what looks like one is not shown either. */
export function withoutKeys(text: string, env: Environment): string {
  return withoutSecrets(text, secretsOf(env))
    .replaceAll(/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, '$1 […]')
    .replaceAll(/\bsk-[\w-]{8,}/g, '[…]')
}
