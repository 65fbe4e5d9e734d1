import { expect, test } from 'vitest'
import { eventsPage } from './events-page.js'
import { turnPage } from './turn-page.js'

// That nothing is left out, the compiler says: both are made of records whose keys are those of the public types.
test('the page about events is what is said of each type', async () => {
  await expect(eventsPage()).toMatchFileSnapshot('../../docs/events.md')
})

test('the page about turns is what is said of each member', async () => {
  await expect(turnPage()).toMatchFileSnapshot('../../docs/turn.md')
})
