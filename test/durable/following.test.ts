import * as tutti from 'tutti'
import { expect, test } from 'vitest'
import { counted } from './children/counted.js'
import { Child, patience, Place } from './processes.js'

test('a process that only follows a run of another lives until the run has ended', patience, async () => {
  using place = new Place()
  const definition = counted(tutti, () => {})
  await using engine = await tutti.open({ store: place.store, definitions: [definition] })
  const run = await engine.start(definition, { id: 'run' })
  for await (const event of run.events()) if (event.type === 'ask.opened') break
  await using child = new Child('follower', place, { run: 'run' })
  expect(await child.said()).toBe('opened')
  const [ask] = await run.asks()
  // Long enough that a process with nothing to keep it alive would have ended.
  await new Promise((resolve) => setTimeout(resolve, 300))
  await run.answer(ask?.id ?? '', 'yes')
  expect(await child.said()).toBe('run.succeeded')
  expect(await child.end()).toBe(0)
})
