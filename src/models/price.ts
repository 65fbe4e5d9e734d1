/** What a model costs, in USD per million tokens. */
export interface Price {
  readonly input: number
  readonly output: number
}

/** Prices by the name of the model, as agents name it: `{ 'openai/gpt-5.4-mini': { input, output } }`. */
export type Prices = Readonly<Record<string, Price>>

/** What is wrong with prices; undefined if nothing is. A price that is not a number would make every limit of cost hold nothing. */
export function pricesProblem(prices: unknown): string | undefined {
  if (typeof prices !== 'object' || prices === null || Array.isArray(prices)) return 'prices are an object: { model: { input, output } }'
  const isCost = (cost: unknown) => typeof cost === 'number' && Number.isFinite(cost) && cost >= 0
  const bad = Object.entries(prices as Record<string, Partial<Price> | null>).find(
    ([, price]) => !isCost(price?.input) || !isCost(price?.output),
  )
  return bad === undefined ? undefined : `the price of '${bad[0].slice(0, 100)}' is { input, output }, each in USD per million tokens`
}

/**
 * What a token of a model costs, in USD, from the prices that the user gave; undefined if nobody knows: prices change, and none is kept here.
 * Models are known by provider and id; providers that speak several protocols add which (`openai.responses`), and prices don't depend on it.
 */
export function pricesFrom(prices: Prices): (model: string) => Price | undefined {
  return (model) => {
    const name = model.replace(/^([^./]+)\.[^/]*\//, '$1/')
    // Nothing is bought from ourselves.
    if (name.startsWith('tutti/')) return { input: 0, output: 0 }
    const price = [model, name].find((key) => Object.hasOwn(prices, key))
    if (price === undefined) return undefined
    const { input, output } = prices[price] as Price
    return { input: input / 1_000_000, output: output / 1_000_000 }
  }
}

/** What the provider says that a call has cost, in USD: OpenRouter does, in the usage or, by its own package, in the metadata. */
export function reportedCost(result: object): number | undefined {
  const raw = at(at(result, 'usage'), 'raw')
  const own = at(at(at(result, 'providerMetadata'), 'openrouter'), 'usage')
  return [at(raw, 'cost'), at(own, 'cost')].find((cost): cost is number => typeof cost === 'number' && Number.isFinite(cost) && cost >= 0)
}

const at = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
