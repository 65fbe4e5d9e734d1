import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { open } from 'tutti'

const child = fileURLToPath(new URL('children/items.js', import.meta.url))

test('kill -9 in the middle of an each keeps the items that had finished: they are not executed again', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-items-'))
  const [store, log, go] = [join(folder, 'x.db'), join(folder, 'log'), join(folder, 'go')]
  const lines = (): string[] => {
    try {
      return readFileSync(log, 'utf8').trim().split('\n')
    } catch {
      return []
    }
  }
  try {
    const first = spawn(process.execPath, [child, store, log, go], { stdio: 'ignore' })
    const dead = new Promise((resolve) => first.once('exit', (_, signal) => resolve(signal)))
    const finished = await finishedItems(store, 12)
    first.kill('SIGKILL')
    expect(await dead).toBe('SIGKILL')
    const before = lines().length
    writeFileSync(go, '')
    const output = execFileSync(process.execPath, [child, store, log, go], { encoding: 'utf8' })
    expect(Number(output)).toBe(380)
    const again = lines().slice(before)
    for (const item of finished) expect(again).not.toContain(`item ${item}`)
    expect(new Set(lines()).size).toBe(20)
    // Only what was in flight runs twice.
    expect(lines().length).toBeLessThanOrEqual(20 + 5)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** Follows the run from another process until so many items have completed. */
async function finishedItems(store: string, count: number): Promise<number[]> {
  await using tutti = await open({ store })
  for (;;) {
    const run = await tutti.run('run').catch(() => null)
    if (run === null) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      continue
    }
    const items: number[] = []
    for await (const event of run.events()) {
      if (event.type === 'step.completed' && event.item !== undefined) items.push(event.item)
      if (items.length >= count) return items
    }
  }
}
