/** The environment, as far as it is looked at. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Which model is meant, and why. Keys are named by their variable and never held, so that nothing that shows a choice can show one. */
export type ModelChoice =
  | { readonly provider: 'sim'; readonly why: string }
  | { readonly provider: 'openai' | 'anthropic' | 'openrouter'; readonly id: string; readonly key: string; readonly why: string }
  /** Anything that speaks /chat/completions. `key` is the variable of one, if it is set: a server of one's own wants none. */
  | { readonly provider: 'compatible'; readonly id: string; readonly url: string; readonly key?: string; readonly why: string }
  /** A name that says nothing to us. */
  | { readonly provider: 'unknown'; readonly problem: string; readonly hint: string }

/** What each provider's key is called, and which model is taken when none is named. */
const providers = [
  { provider: 'openai', key: 'OPENAI_API_KEY', id: 'gpt-5.4-mini' },
  { provider: 'anthropic', key: 'ANTHROPIC_API_KEY', id: 'claude-haiku-4-5' },
  { provider: 'openrouter', key: 'OPENROUTER_API_KEY', id: 'openrouter/auto' },
] as const

const forms = "'openai/…', 'anthropic/…', 'openrouter/…', 'http://host/v1#model' or 'sim'"

/** The model that a name means. */
export function namedModel(name: string, env: Environment, why: string = `'${name}' was asked for`): ModelChoice {
  if (name === 'sim') return { provider: 'sim', why }
  const [url = '', id = ''] = name.split(/#(.*)/s)
  if (/^https?:\/\//i.test(url)) return modelAt(url, id, setIn(env, 'OPENAI_COMPATIBLE_API_KEY'), why)
  const known = providers.find(({ provider }) => name.startsWith(`${provider}/`) && name.length > provider.length + 1)
  if (known === undefined) return unknown(`there is no model '${name.slice(0, 100)}'`, `name it ${forms}, or give a model of the AI SDK`)
  return { ...known, id: name.slice(known.provider.length + 1), why }
}

/** The model of agents that name none: what the environment says, else `sim`. */
export function defaultModel(env: Environment): ModelChoice {
  if (setIn(env, 'TUTTI_MODEL') !== undefined) return namedModel(env['TUTTI_MODEL'] ?? '', env, 'TUTTI_MODEL is set')
  const [openai] = providers
  if (setIn(env, 'OPENAI_BASE_URL') !== undefined)
    return modelAt(env['OPENAI_BASE_URL'] ?? '', openai.id, setIn(env, openai.key), `OPENAI_BASE_URL is set; ${another}`)
  const found = providers.find(({ key }) => setIn(env, key) !== undefined)
  if (found !== undefined) return { ...found, why: `${found.key} is set; ${another}` }
  return { provider: 'sim', why: `none of TUTTI_MODEL, OPENAI_BASE_URL, ${providers.map(({ key }) => key).join(', ')} is set` }
}

const another = 'TUTTI_MODEL names another model'
const unknown = (problem: string, hint: string): ModelChoice => ({ provider: 'unknown', problem, hint })
/** The variable itself, if it holds something. */
const setIn = (env: Environment, key: string): string | undefined => ((env[key] ?? '') === '' ? undefined : key)

/** A model at a base URL. */
function modelAt(base: string, id: string, key: string | undefined, why: string): ModelChoice {
  const hint = "write it as 'http://127.0.0.1:11434/v1#model'"
  if (!URL.canParse(base)) return unknown('the address of a model is no URL', hint)
  const { username, password, search, host, href } = new URL(base)
  // Nothing of it is shown: what is before the @ is a secret, and what is after the ? may be one.
  if (username !== '' || password !== '' || search !== '')
    return unknown(`the address of the model at ${host} has a user, a password or a ? in it`, 'put the key into OPENAI_COMPATIBLE_API_KEY')
  const url = href.replace(/\/$/, '')
  if (id === '') return unknown(`it is not said which model at ${url}`, hint)
  return { provider: 'compatible', id, url, ...(key === undefined ? {} : { key }), why }
}
