/** The long search: `tsx test/reference/soak.ts [topologies] [orders] [first seed]`. */
import { search } from './search.js'

const [topologies = 20_000, orders = 20, from = 1] = process.argv.slice(2).map(Number)
const found = search({ from, topologies, orders })
console.log(JSON.stringify({ ...found, divergences: found.divergences.length }))
for (const { seed, why, orders: two } of found.divergences) {
  console.log(`seed ${seed}: ${why}`)
  for (const order of two) console.log(`  ${order.join(', ')}`)
}
process.exitCode = found.divergences.length > 0 ? 1 : 0
