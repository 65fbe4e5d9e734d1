import { type Browser, chromium, type Page } from 'playwright-core'
import { type JournalEvent, open, timelineHtml, timelineOf, timelineSvg, topology } from 'tutti'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { browserArgs, browserPath } from './browser.js'

const evil =
  '</title></text></svg><script>globalThis.hacked = true</script><img src="http://127.0.0.1:9/x" onerror="globalThis.hacked = true">'

/** A run whose every text attacks the reader, with names as long as they may be. */
async function attacked(): Promise<JournalEvent[]> {
  const long = `Agent${'W'.repeat(59)}`
  const team = topology({
    name: evil,
    flows: ['Start -> Boss -> End', `Boss <-> ${long}`, 'Boss -> User'] as never,
    agents: {
      Boss: {
        act: {
          request: (turn: any) => turn.fork([long, long, long], { request: evil, join: 'settled' }),
          join: (turn: any) => turn.ask(evil),
          answer: (turn: any) => turn.finish(evil),
        },
      },
      [long]: (turn: any) => {
        if (turn.branchId === 'r.1') throw new Error(evil)
        return turn.reply(evil)
      },
    } as never,
  })
  const tutti = await open({ store: 'memory:' })
  const run = await tutti.start(team)
  const events: JournalEvent[] = []
  for await (const event of run.events()) {
    events.push(event)
    if (event.type === 'ask.opened') await run.answer(event.ask.id, evil, { by: evil })
  }
  await tutti.close()
  return events
}

interface Seen {
  readonly hacked: boolean
  readonly foreign: number
  readonly ground: string
  readonly outside: string[]
}

/** What a reader's browser makes of it. */
function look(): Seen {
  const svg = document.querySelector('svg')
  const frame = svg?.getBoundingClientRect()
  const outside = [...(svg?.querySelectorAll('text') ?? [])].filter((text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect()
    return frame === undefined || left < frame.left || right > frame.right + 1 || top < frame.top || bottom > frame.bottom + 1
  })
  return {
    hacked: 'hacked' in globalThis,
    foreign: document.querySelectorAll('script, img, iframe, object, embed, a, link').length,
    ground: getComputedStyle(svg?.querySelector('rect[fill="var(--tutti-ground)"]') as globalThis.Element).fill,
    outside: outside.map((text) => text.textContent ?? ''),
  }
}

const there = browserPath === undefined ? test.skip : test
let browser: Browser | undefined
beforeAll(async () => {
  if (browserPath !== undefined) browser = await chromium.launch({ executablePath: browserPath, args: [...browserArgs] })
}, 60_000)
afterAll(() => browser?.close())

async function opened(body: string, type: string, colorScheme: 'dark' | 'light'): Promise<{ seen: Seen; asked: string[] }> {
  const page = (await browser?.newPage({ colorScheme })) as Page
  const asked: string[] = []
  await page.route('**/*', async (route) => {
    const url = route.request().url()
    if (url === 'http://tutti.test/') await route.fulfill({ body, contentType: type })
    else {
      asked.push(url)
      await route.abort()
    }
  })
  await page.goto('http://tutti.test/')
  const seen = await page.evaluate(look)
  await page.close()
  return { seen, asked: asked.filter((url) => !url.endsWith('/favicon.ico')) }
}

there(
  'in a real browser hostile texts run nothing and load nothing, every text stays in the picture, and it is dark or light',
  async () => {
    const timeline = timelineOf(await attacked())
    for (const [body, type] of [
      [timelineHtml(timeline), 'text/html'],
      [timelineSvg(timeline), 'image/svg+xml'],
    ] as const) {
      const dark = await opened(body, type, 'dark')
      const light = await opened(body, type, 'light')
      for (const { seen, asked } of [dark, light]) {
        expect(asked).toEqual([])
        expect(seen).toMatchObject({ hacked: false, foreign: 0, outside: [] })
      }
      expect([dark.seen.ground, light.seen.ground]).toEqual(['rgb(18, 21, 26)', 'rgb(255, 255, 255)'])
    }
  },
)

/** A page 800 pixels wide, of a run in which an agent of that name says a word with no end. */
async function wordy(name: string): Promise<Page> {
  const team = topology({
    name: 'words',
    flows: [`Start -> ${name} -> End`],
    agents: {
      [name]: () => {
        throw new Error('x'.repeat(500))
      },
    },
  } as never)
  const tutti = await open({ store: 'memory:' })
  const run = await tutti.start(team)
  const events: JournalEvent[] = []
  for await (const event of run.events()) events.push(event)
  await tutti.close()
  const page = (await browser?.newPage({ viewport: { width: 800, height: 600 } })) as Page
  await page.setContent(timelineHtml(timelineOf(events)))
  return page
}

there('a word with no end leaves the columns beside it readable, and names in one piece', async () => {
  const page = await wordy('Coordinator_of_everything')
  const lines = await page.evaluate(() =>
    [...document.querySelectorAll('th, td.short, td.name')].map((cell) => {
      const range = document.createRange()
      range.selectNodeContents(cell)
      return `${cell.textContent}: ${range.getClientRects().length}`
    }),
  )
  await page.close()
  expect(lines).toHaveLength(8)
  for (const line of lines) expect(line).toMatch(/: 1$/)
})

there('a name as long as one may be is broken before the page is too wide', async () => {
  const page = await wordy(`Agent${'W'.repeat(59)}`)
  const right = await page.evaluate(() => document.querySelector('table')?.getBoundingClientRect().right)
  await page.close()
  expect(right).toBeLessThanOrEqual(780)
})
