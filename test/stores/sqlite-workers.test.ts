import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, relative } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite.js'
import { Child } from './child.js'
import { Folder } from './folder.js'

const folder = new Folder()
afterAll(() => folder[Symbol.dispose]())

const open = (path: string) => sqliteStore(path, { durability: 'process' })
const definitions = [{ name: 'd', versions: ['1'] }]
const locksOf = (path: string): string[] => readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}-worker-`))

test('the death of a process is seen at the next beat, and its runs can be taken at once', async () => {
  const path = folder.file()
  const store = await open(path)
  const by = await store.join({ nonce: 'n' })
  const child = new Child('join-and-wait', path, 'r')
  const worker = Number(await child.line())
  expect(await store.beat(by)).toEqual([{ worker, beat: 0, gone: false }])
  expect(await store.beat(by)).toEqual([{ worker, beat: 0, gone: false }])
  await child.kill()
  const [peer] = await store.beat(by)
  expect(peer).toEqual({ worker, beat: 0, gone: true })
  if (peer !== undefined) expect(await store.fence(peer, 5)).toBe(1)
  const { rows } = await store.claim({ worker: by, definitions, now: 5, limit: 9 })
  expect(rows).toMatchObject([{ id: 'r', epoch: 2, worker: by }])
  expect(await store.beat(by)).toEqual([])
  expect(locksOf(path)).toEqual([`${basename(path)}-worker-${by}`])
  await store.leave(by, 0)
  await store.close()
  expect(locksOf(path)).toEqual([])
})

test.skipIf(process.platform === 'win32')('a process that is only frozen is not taken for dead', async () => {
  const path = folder.file()
  const store = await open(path)
  const by = await store.join({ nonce: 'n' })
  using child = new Child('join-and-wait', path, 'r')
  const worker = Number(await child.line())
  child.signal('SIGSTOP')
  expect(await store.beat(by)).toEqual([{ worker, beat: 0, gone: false }])
  child.signal('SIGCONT')
  await store.close()
})

test('a store that was closed without leaving counts as dead, also within one process', async () => {
  const path = folder.file()
  const [first, second] = [await open(path), await open(path)]
  const dead = await first.join({ nonce: 'a' })
  const twin = await second.join({ nonce: 'b' })
  const by = await second.join({ nonce: 'c' })
  const seen = async () => (await second.beat(by)).map(({ worker, gone }) => [worker, gone])
  expect(await seen()).toEqual([
    [dead, false],
    [twin, false],
  ])
  await first.close()
  expect(await seen()).toEqual([
    [dead, true],
    [twin, false],
  ])
  await second.close()
})

test('a worker that was fenced and joined again is alive to all, also to who looked at it before', async () => {
  const path = folder.file()
  const [first, second, third] = [await open(path), await open(path), await open(path)]
  const fenced = await first.join({ nonce: 'a' })
  const onlooker = await third.join({ nonce: 'c' })
  const seen = async () => (await third.beat(onlooker)).find(({ worker }) => worker === fenced)
  expect(await seen()).toMatchObject({ gone: false })
  await second.fence({ worker: fenced, beat: 0 }, 1)
  await first.beat(fenced)
  expect(await seen()).toMatchObject({ gone: false })
  await first.close()
  expect(await seen()).toMatchObject({ gone: true })
  await second.close()
  await third.close()
})

test.skipIf(process.platform === 'win32').each(['before', 'after'])(
  'a link to a store is the store: who died is seen through it, and that its log was removed (made %s the store is)',
  async (made) => {
    const path = folder.file()
    const link = `${dirname(folder.file())}.db`
    mkdirSync(dirname(path))
    if (made === 'before') symlinkSync(relative(dirname(link), path), link)
    const store = await open(made === 'before' ? link : path)
    const dead = await store.join({ nonce: 'a' })
    if (made === 'after') symlinkSync(path, link)
    const linked = await open(link)
    const by = await linked.join({ nonce: 'b' })
    expect(await linked.beat(by)).toEqual([{ worker: dead, beat: 0, gone: false }])
    await store.close()
    expect(await linked.beat(by)).toEqual([{ worker: dead, beat: 0, gone: true }])
    rmSync(`${path}-wal`)
    await new Promise((resolve) => setTimeout(resolve, 150))
    await expect(linked.beat(by)).rejects.toThrow(/removed or replaced/)
    await linked.close()
  },
)

test('where the file of a worker is missing only its beat counts', async () => {
  const path = folder.file()
  const [first, second] = [await open(path), await open(path)]
  const worker = await first.join({ nonce: 'a' })
  const by = await second.join({ nonce: 'b' })
  rmSync(`${path}-worker-${worker}`)
  expect(await second.beat(by)).toEqual([{ worker, beat: 0, gone: false }])
  expect(existsSync(`${path}-worker-${worker}`)).toBe(false)
  await first.close()
  await second.close()
})

test('files that a process left behind are cleared away by the next to join', async () => {
  const path = folder.file()
  const store = await open(path)
  for (const name of ['77', '78']) writeFileSync(`${path}-worker-${name}`, '')
  writeFileSync(`${path}-worker-notes`, '')
  const by = await store.join({ nonce: 'n' })
  expect(locksOf(path).toSorted()).toEqual([`${basename(path)}-worker-${by}`, `${basename(path)}-worker-notes`])
  await store.close()
})

test.skipIf(process.platform === 'win32')('who has open what was removed is not in the way of what is there now', async () => {
  const path = folder.file()
  const before = await open(path)
  for (const nonce of ['a', 'b']) await before.join({ nonce })
  for (const file of [path, `${path}-wal`, `${path}-shm`]) rmSync(file)
  const store = await open(path)
  const [first, second] = [await store.join({ nonce: 'c' }), await store.join({ nonce: 'd' })]
  expect(await store.beat(first)).toEqual([{ worker: second, beat: 0, gone: false }])
  await before.close()
  expect(await store.beat(first)).toEqual([{ worker: second, beat: 0, gone: false }])
  await store.close()
})

test('who listens is woken by the commit of another process', async () => {
  const path = folder.file()
  const store = await open(path)
  const by = await store.join({ nonce: 'n' })
  store.moved(by)
  const woken = new Promise<void>((resolve) => {
    const stop = store.onMoved(() => {
      stop()
      resolve()
    })
  })
  using child = new Child('open-and-commit', path, 'c', 1)
  await woken
  expect(store.moved(by)).toBe(true)
  await child.end()
  await store.close()
})
