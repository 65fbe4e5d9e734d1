import { expect, test } from 'vitest'
import { lifecyclePage } from './lifecycle-page.js'

test('the page about lifecycles is what the tables say', async () => {
  await expect(lifecyclePage()).toMatchFileSnapshot('../../docs/lifecycle.md')
})
