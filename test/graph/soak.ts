/** The long search: `tsx test/graph/soak.ts [graphs] [orders] [first seed]`. */
import { search } from './search.js'

const [graphs = 20_000, orders = 20, from = 1] = process.argv.slice(2).map(Number)
const { departures, ...figures } = search({ from, graphs, orders })
console.log(JSON.stringify({ ...figures, departures: departures.length }))
for (const departure of departures) console.log(departure)
process.exitCode = departures.length > 0 ? 1 : 0
