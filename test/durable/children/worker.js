// A worker that executes what is there, and what it is told to start, until it is told to close: `{ store, log, play, options, ttlMs,
// blind }`. A blind one is told of nothing that others write.
import { createInterface } from 'node:readline'
import { plays } from './plays.js'
import { given, open, say, sqliteStore, tutti, write } from './tutti.js'

const make = plays[given.play]
const definition = make(tutti, write, given.options ?? {})
const inner = given.blind ? await sqliteStore(given.store, { durability: 'process' }) : null
const store = inner === null ? given.store : { ...inner, moved: () => false, onMoved: () => () => {} }
const engine = await open({ store, definitions: [definition], workerTtlMs: given.ttlMs ?? 10_000, graceMs: 50 })
say('opened')
for await (const line of createInterface({ input: process.stdin })) {
  const { start, close } = JSON.parse(line)
  if (close) break
  for (const id of start) await engine.start(definition, { id })
  say('started')
}
await engine.close()
await inner?.close()
say('closed')
// Else it would wait for more of what it is told.
process.stdin.destroy()
