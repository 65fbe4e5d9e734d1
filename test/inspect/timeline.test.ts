import fc from 'fast-check'
import {
  type Bar,
  graph,
  type JournalEvent,
  type Lane,
  type Timeline,
  timelineHtml,
  timelineOf,
  timelineSvg,
  timelineText,
  topology,
} from 'tutti'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { foldLanes } from '../../src/inspect/fold-lanes.js'
import { plain } from '../../src/inspect/escape.js'
import { cells } from '../../src/inspect/text-size.js'
import { timeScale } from '../../src/inspect/time-scale.js'
import { journal, journalSoFar, opened, rest, timed } from '../engine/opened.js'
import { elements, readMarkup, textOf } from './read-markup.js'

const team = topology({
  name: 'team',
  flows: ['Start -> Boss', 'Boss <-> Ann | Ben | Cem', 'Boss -> User | End'],
  agents: {
    Boss: {
      act: {
        request: async (turn) => {
          await turn.sleep(10)
          return turn.fork(['Ann', 'Ben', 'Cem'])
        },
        join: (turn) => turn.ask('Is it <b>good</b>?'),
        answer: async (turn) => {
          await turn.sleep(5)
          return turn.finish('done')
        },
      },
    },
    Ann: {
      retry: { attempts: 2, backoffMs: 20 },
      act: async (turn) => {
        await turn.sleep(15)
        if (turn.attempt === 1) throw new Error('busy')
        return turn.reply('a')
      },
    },
    Ben: async (turn) => {
      await turn.sleep(30)
      return turn.reply('b')
    },
    Cem: async (turn) => {
      await turn.sleep(200)
      await turn.step('look', () => 1)
      return turn.reply('c')
    },
  },
})

/** The journal of the team: a person answers three days later. */
async function teamwork(): Promise<JournalEvent[]> {
  await using at = await timed()
  const run = await at.tutti.start(team, { id: 'team-1' })
  await at.clock.advance(250)
  await at.clock.advance(3 * 86_400_000)
  await run.answer((await run.asks())[0]?.id ?? '', true, { by: 'dora' })
  await at.clock.advance(10)
  return journal(run)
}

/** A fork of many, of which some fail and one is slow. */
async function crowd(width: number): Promise<JournalEvent[]> {
  const wide = topology({
    name: 'crowd',
    flows: ['Start -> Boss -> End', 'Boss <-> Worker'],
    agents: {
      Boss: {
        act: {
          request: (turn) =>
            turn.fork(
              Array.from({ length: width }, (_, request) => ({ to: 'Worker' as const, request })),
              { join: 'settled' },
            ),
          join: (turn, { values }) => turn.finish(values.length),
        },
      },
      Worker: async (turn) => {
        const index = turn.request as number
        await turn.sleep(index === 5 ? 500 : 10 + (index % 7))
        if (index % 300 === 3) throw new Error(`worker ${index}`)
        return turn.reply(index)
      },
    },
  })
  await using at = await timed()
  const run = await at.tutti.start(wide)
  await at.clock.advance(1_000)
  return journal(run)
}

const since = ({ from }: Timeline, moment: Bar['from']): number => moment.at - from.at
const barsOf = (timeline: Timeline, lane: Lane | undefined): unknown[] =>
  (lane?.bars ?? []).map((bar) => [bar.kind, bar.agent, since(timeline, bar.from), since(timeline, bar.to)])
const criticalOf = ({ lanes }: Timeline): string[] =>
  lanes
    .flatMap(({ bars }) => bars)
    .filter(({ critical }) => critical)
    .sort((a, b) => a.from.seq - b.from.seq)
    .map(({ agent, kind }) => `${agent} ${kind}`)

describe('a timeline', () => {
  let events: JournalEvent[]
  let timeline: Timeline
  beforeAll(async () => {
    events = await teamwork()
    timeline = timelineOf(events)
  })

  test('has a lane per branch, and a bar for each turn, each wait and each failed attempt', () => {
    const [boss, ann, ben, cem] = timeline.lanes
    const late = 250 + 3 * 86_400_000
    expect(timeline.lanes.map(({ id, agents, outcome }) => [id, agents, outcome])).toEqual([
      ['r', ['Boss'], 'arrived'],
      ['r.0', ['Ann'], 'arrived'],
      ['r.1', ['Ben'], 'arrived'],
      ['r.2', ['Cem'], 'arrived'],
    ])
    expect(barsOf(timeline, boss)).toEqual([
      ['turn', 'Boss', 0, 10],
      ['barrier', 'Boss', 10, 210],
      ['turn', 'Boss', 210, 210],
      ['person', 'Boss', 210, late],
      ['turn', 'Boss', late, late + 5],
    ])
    expect(ann?.bars.map(({ kind, attempt }) => [kind, attempt])).toEqual([
      ['failed', 1],
      ['backoff', null],
      ['turn', 2],
    ])
    expect(ann?.bars[0]?.text).toBe('AGENT_FAILED: busy')
    expect(barsOf(timeline, ben)).toEqual([['turn', 'Ben', 10, 40]])
    expect(cem?.bars[0]?.activities).toEqual(['sleep', 'look'])
    expect(boss?.bars[1]?.text).toBe('3 of 3 arrived')
    expect(boss?.bars[3]?.text).toContain('answered by dora')
  })

  test('says which way decided when the run ended: through the slowest branch and the person', () => {
    expect(criticalOf(timeline)).toEqual(['Boss turn', 'Cem turn', 'Boss turn', 'Boss person', 'Boss turn'])
    expect(timelineText(timeline)).toContain('critical path: Boss 10 ms → Cem 200 ms → Boss 0 ms → a person 3 d → Boss 5 ms')
  })

  test('of a run that goes on ends now, with what it waits for', async () => {
    await using at = await timed()
    const run = await at.tutti.start(team)
    await at.clock.advance(100)
    const live = timelineOf(await journalSoFar(run), 160)
    expect(live.status).toBe('running')
    expect(criticalOf(live)).toEqual(['Boss turn', 'Cem turn'])
    expect(live.lanes[3]?.bars[0]).toMatchObject({ kind: 'turn', open: true, to: { at: 160 } })
    await run.cancel()
  })

  test('shows pauses, and who was told to stop when the run was cancelled', async () => {
    await using at = await timed()
    const run = await at.tutti.start(team)
    await at.clock.advance(20)
    await run.pause()
    await at.clock.advance(50)
    await run.resume()
    await run.cancel()
    await at.clock.advance(10)
    const drawn = timelineOf(await journal(run))
    expect(drawn).toMatchObject({ status: 'cancelled', pauses: [{ from: { at: 20 }, to: { at: 70 } }] })
    expect(drawn.lanes[2]).toMatchObject({ outcome: 'cancelled', bars: [{ kind: 'aborted' }] })
    expect(timelineText(drawn)).toContain('‖ paused')
  })

  test('a wait of days is cut short, so that milliseconds of work are still seen', () => {
    const scale = timeScale(timeline)
    const asked = timeline.lanes[0]?.bars[3] as Bar
    expect(scale.breaks.map(({ text }) => text)).toEqual(['3 d'])
    expect(scale.x(asked.to) - scale.x(asked.from)).toBeLessThan(0.5)
    expect(scale.x(asked.from)).toBeGreaterThan(0.4)
    expect(scale.ticks(0.1).map(({ text }) => text)[1]).toMatch(/ms$/)
  })

  test('a long sleep within a turn is seen as one, and cut short too', async () => {
    const nap = graph('nap')
      .step('rest', {
        run: async ({ sleep }) => {
          await sleep(50)
          await sleep(86_400_000)
          await sleep(50)
        },
      })
      .output()
    await using at = await timed()
    const run = await at.tutti.start(nap)
    await at.clock.advance(86_500_000)
    const drawn = timelineOf(await journal(run))
    expect(barsOf(drawn, drawn.lanes[0])).toEqual([
      ['turn', 'rest', 0, 86_400_100],
      ['sleep', 'rest', 50, 86_400_050],
    ])
    expect(timeScale(drawn).breaks.map(({ text }) => text)).toEqual(['1 d'])
    expect(timelineText(drawn)).toMatch(/rest +█+z+█+ /)
    expect(criticalOf(drawn)).toEqual(['rest turn'])
  })

  test('where the clock stands still, order is still seen', () => {
    const still = timelineOf(events.map((event) => ({ ...event, at: 0 })))
    const scale = timeScale(still)
    const [[forks, , joins], [first, , last]] = still.lanes.map(({ bars }) => bars) as [Bar[], Bar[]]
    const places = [forks?.from, first?.from, last?.to, joins?.from].map((moment) => scale.x(moment as Bar['from']))
    expect(places).toEqual([...new Set(places)].sort((a, b) => a - b))
    expect(scale.x(still.to)).toBeCloseTo(1)
  })

  test('as text it has no escape sequence without colour, keeps to its width, and is the same with colour', () => {
    for (const width of [40, 72, 100, 180]) {
      const text = timelineText(timeline, { width })
      // oxlint-disable-next-line no-control-regex
      expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
      for (const line of text.split('\n')) expect(cells(line)).toBeLessThanOrEqual(width)
      // oxlint-disable-next-line no-control-regex
      const bare = timelineText(timeline, { width, colour: true }).replace(/\u001b\[[\d;]*m/g, '')
      expect(bare.replace(/ +$/gm, '')).toBe(text)
    }
  })

  test('to invoke who waits is to reply: a bar says only that it invokes', async () => {
    const pair = topology({
      name: 'pair',
      flows: ['Start -> Boss -> End', 'Boss <-> Ann'],
      agents: {
        Boss: { act: { request: (turn) => turn.fork(['Ann']), join: (turn, { values }) => turn.finish(values) } },
        Ann: (turn) => turn.invoke('Boss', 'a'),
      },
    })
    await using at = await timed()
    const drawn = timelineOf(await journal(await at.tutti.start(pair)))
    expect(drawn).toMatchObject({ output: ['a'], lanes: [{}, { outcome: 'arrived', bars: [{ text: 'invokes Boss' }] }] })
  })

  test('as a page it has a column for turns where there are any', () => {
    const heads = [...elements(readMarkup(timelineHtml(timeline)))]
      .filter(({ name }) => name === 'table')
      .map((table) => [...elements(table)].filter(({ name }) => name === 'th').map(textOf))
    expect(heads).toEqual([
      ['branch', 'who', 'turn', 'what', 'for'],
      ['branch', 'who', 'what', 'for'],
    ])
  })

  test('branches that meet go on as one lane', async () => {
    const meet = topology({
      name: 'meet',
      flows: ['Start -> Boss', 'Boss -> Ann | Ben', 'Ann | Ben -> Judge -> End'],
      joins: ['Judge'],
      agents: {
        Boss: (turn) => turn.fork(['Ann', 'Ben']),
        Ann: async (turn) => {
          await turn.sleep(5)
          return turn.invoke('Judge')
        },
        Ben: async (turn) => {
          await turn.sleep(50)
          return turn.invoke('Judge')
        },
        Judge: (turn) => turn.finish('met'),
      },
    })
    await using at = await timed()
    const run = await at.tutti.start(meet)
    await at.clock.advance(100)
    const drawn = timelineOf(await journal(run))
    expect(drawn.lanes.map(({ agents, outcome }) => [agents.join(), outcome]).slice(1)).toEqual([
      ['Ann,Judge', 'escaped'],
      ['Ben', 'merged'],
    ])
    expect(barsOf(drawn, drawn.lanes[1])).toContainEqual(['rendezvous', 'Judge', 5, 50])
    expect(criticalOf(drawn)).toEqual(['Boss turn', 'Ben turn', 'Judge turn'])
  })
})

describe('a thousand branches', () => {
  let timeline: Timeline
  beforeAll(async () => {
    timeline = timelineOf(await crowd(1_000))
  })

  test('are a few lines: one for those that are alike; the critical path and what failed are seen', () => {
    const rows = foldLanes(timeline)
    expect(rows.map((row) => (row.kind === 'lane' ? row.lane.id : `${row.agent} × ${row.lanes.length}`))).toEqual([
      'r',
      'Worker × 995',
      'r.3',
      'r.5',
      'r.303',
      'r.603',
      'r.903',
    ])
    const text = timelineText(timeline)
    expect(text).toMatch(/Worker × 995 .*[▁▂▃▄▅▆▇█]+ .*✓ 995/)
    expect(text).toMatch(/Worker r\.303 .*✗/)
    expect(timelineSvg(timeline).length).toBeLessThan(60_000)
  })

  test('property: every lane is drawn once, alone or in a group, whatever the tree', () => {
    const trees = fc.array(fc.tuple(fc.nat(), fc.constantFrom('A', 'B'), fc.boolean(), fc.boolean()), { maxLength: 300 })
    fc.assert(
      fc.property(trees, (given) => {
        const lanes = given.map(([parent, agent, failed, critical], index): Lane => {
          const at = { seq: index, at: index }
          const above = index === 0 ? null : (`l${parent % index}` as string)
          return {
            id: `l${index}`,
            parent: above,
            agents: [agent],
            item: null,
            outcome: failed ? 'failed' : 'arrived',
            cause: null,
            bars: [],
            critical,
            from: at,
            to: at,
          }
        })
        const rows = foldLanes({ ...timeline, lanes })
        const drawn = rows.flatMap((row) => (row.kind === 'lane' ? [row.lane] : [...row.lanes, ...row.below]))
        expect(drawn.map(({ id }) => id).sort()).toEqual(lanes.map(({ id }) => id).sort())
        expect(rows.length).toBeLessThanOrEqual(101)
      }),
    )
  })
})

test('a graph has a lane per step; its items are one line, and what was skipped says why', async () => {
  const release = graph('release')
    .step('build', { each: () => ['a', 'b', 'c', 'd', 'e', 'f'], concurrency: 2, run: ({ item, sleep }) => sleep(10).then(() => item) })
    .step('check', { onError: 'skip', run: () => Promise.reject(new Error('no')) })
    .ask('approve', { after: ['build'], question: () => 'Ship it?', schema: z.boolean() })
    .step('publish', { after: ['approve'], when: ({ steps }) => steps.approve, run: () => 'out' })
    .output()
  await using at = await timed()
  const run = await at.tutti.start(release)
  await at.clock.advance(100)
  await run.answer((await run.asks())[0]?.id ?? '', false)
  await rest()
  const drawn = timelineOf(await journal(run))
  expect(drawn.kind).toBe('graph')
  const rows = foldLanes(drawn)
  expect(rows.map((row) => (row.kind === 'lane' ? row.lane.agents[0] : `${row.agent} × ${row.lanes.length}`))).toEqual([
    'build',
    'build × 6',
    'check',
    'approve',
    'publish',
  ])
  expect(drawn.lanes.filter(({ item }) => item === null).map(({ outcome, cause }) => [outcome, cause])).toEqual([
    ['arrived', null],
    ['skipped', 'no'],
    ['arrived', null],
    ['skipped', 'its condition did not hold'],
  ])
  expect(timelineText(drawn)).toMatch(/check .*✗.*– skipped: no/)
  expect(criticalOf(drawn).slice(-3)).toEqual(['approve turn', 'approve person', 'publish turn'])
})

test('a run that only undoes is drawn by what it undoes, and nothing is said of branches and turns, which it has not', async () => {
  const stay = graph('stay')
    .step('rooms', { each: () => [1, 2], run: ({ item }) => item, compensate: () => 0 })
    .step('key', { run: () => 'K', compensate: ({ attempt }) => (attempt === 1 ? Promise.reject(new Error('closed')) : 0) })
    .output()
  const trip = graph('trip')
    .step('stay', { run: stay })
    .step('pay', { after: ['stay'], run: () => Promise.reject(new Error('declined')) })
    .output()
  await using at = await timed()
  const run = await at.tutti.start(trip, { id: 'trip' })
  await at.clock.advance(3_600_000)
  await run.result()
  const events = await journal(await at.tutti.run('trip:stay:undo'))
  const drawn = timelineOf(events)
  expect(drawn.lanes.map(({ id, agents, bars }) => [id, agents, bars.map(({ kind }) => kind)])).toEqual([
    ['rooms:0', ['rooms:0'], ['undo']],
    ['rooms:1', ['rooms:1'], ['undo']],
    ['key', ['key'], ['failed', 'backoff', 'undo']],
  ])
  const text = timelineText(drawn)
  expect(text).toMatch(/^run trip:stay:undo, 1 failed, 3 undone$[^]*^rooms:1 .*↶ undone$[^]*^key .*↶ undone$[^]*^critical path: key/m)
  expect(text).not.toContain('█')
  const begun = timelineOf(events.slice(0, 1))
  for (const drawing of [timelineText(begun), timelineHtml(begun)]) expect(drawing).not.toMatch(/critical path|What it waited for/)
})

test('what is undone has bars of its own, in the lane of what it undoes, with the attempts it took', async () => {
  const trip = graph('trip')
    .step('flight', { run: () => 'F', compensate: () => 0 })
    .step('rooms', {
      each: () => [1, 2],
      run: ({ item }) => item,
      compensate: ({ item, attempt }) => (item === 2 && attempt === 1 ? Promise.reject(new Error('closed')) : 0),
    })
    .step('visa', { run: () => 'V', compensate: () => Promise.reject(new Error('never')) })
    .step('pay', { after: ['flight', 'rooms', 'visa'], run: () => Promise.reject(new Error('declined')) })
    .output()
  await using at = await timed()
  const run = await at.tutti.start(trip)
  await at.clock.advance(3_600_000)
  const drawn = timelineOf(await journal(run))
  const undos = drawn.lanes.map(({ agents, item, bars }) => [
    agents[0],
    item,
    bars.filter(({ turn }) => turn === null).map(({ kind }) => kind),
  ])
  expect(undos).toEqual([
    ['flight', null, ['undo']],
    ['rooms', null, ['barrier']],
    ['visa', null, [...Array.from({ length: 4 }, () => ['failed', 'backoff']).flat(), 'undo-failed']],
    ['pay', null, []],
    ['rooms', 0, ['undo']],
    ['rooms', 1, ['failed', 'backoff', 'undo']],
  ])
  expect(drawn).toMatchObject({ status: 'failed', rollback: 'partial' })
  expect(timelineText(drawn)).toMatch(/trip: failed after .*, and not all of it undone[^]*flight .*↶ undone[^]*visa .*✗ not undone/)
  const legend = [...elements(readMarkup(timelineSvg(drawn)))].filter(({ name }) => name === 'text').map(textOf)
  expect(legend.at(-1)?.trim()).toBe('↶ undone   ✓ arrived   ✗ not undone   ✗ failed')
})

test('what a child run did is undone in the lane of its step, and its item', async () => {
  const pays = graph('pays')
    .step('card', { run: () => 1, compensate: () => Promise.reject(new Error('never')) })
    .output()
  const shop = graph('shop')
    .step('pay', { each: () => [1, 2], run: pays, input: () => null })
    .step('rent', { run: pays, input: () => null })
    .step('send', { after: ['pay', 'rent'], run: () => Promise.reject(new Error('closed')) })
    .output()
  await using at = await timed()
  const run = await at.tutti.start(shop, { id: 'pay' })
  await at.clock.advance(3_600_000)
  const lanes = timelineOf(await journal(run)).lanes.filter(({ bars }) => bars.some(({ kind }) => kind === 'undo-failed'))
  expect(lanes.map(({ agents, item }) => [agents[0], item])).toEqual([
    ['rent', null],
    ['pay', 0],
    ['pay', 1],
  ])
})

describe('why something failed', () => {
  const row = (file: string, branch: string): string[] =>
    [...elements(readMarkup(file))]
      .filter(({ name }) => name === 'tr')
      .map((tr) => [...elements(tr)].filter(({ name }) => name === 'td').map(textOf))
      .filter(([first]) => first === branch)
      .map((cells) => cells.join(' | '))

  test('is told of a turn that throws, of one that says so, of a join that was not met and of an answer that never came', async () => {
    const hub = topology({
      name: 'hub',
      flows: ['Start -> Hub -> End', 'Hub <-> Ann | Ben | Cem | Dan', 'Cem <-> Eve', 'Dan -> User'],
      agents: {
        Hub: {
          act: {
            request: (turn) => turn.fork(['Ann', 'Ben', 'Cem', 'Dan'], { join: 'settled' }),
            join: (turn) => turn.finish('ok'),
          },
        },
        Ann: (turn) => turn.fail('the warehouse is closed'),
        Ben: () => {
          throw new Error('it burns')
        },
        Cem: { act: { request: (turn) => turn.fork(['Eve']), join: (turn) => turn.reply('never') } },
        Dan: { act: { request: (turn) => turn.ask('Who?', { timeoutMs: 5 }), answer: (turn) => turn.reply('never') } },
        Eve: (turn) => turn.fail('no bread'),
      },
    })
    await using at = await timed()
    const run = await at.tutti.start(hub)
    await at.clock.advance(10)
    const drawn = timelineOf(await journal(run))
    const reasons = [
      ['r.0', 'Ann', 'AGENT_FAILED: the warehouse is closed'],
      ['r.1', 'Ben', 'AGENT_FAILED: it burns'],
      ['r.2', 'Cem', 'JOIN_FAILED: the join of Cem (barrier r.2#1) failed in slot 0, Eve: no bread'],
      ['r.2.0', 'Eve', 'AGENT_FAILED: no bread'],
      ['r.3', 'Dan', 'ASK_EXPIRED: '],
    ] as const
    const [text, page] = [timelineText(drawn), timelineHtml(drawn)]
    for (const [branch, who, why] of reasons) {
      expect(text).toContain(`✗ ${who}: ${why}`)
      expect(row(page, branch).filter((line) => line.includes(`| ${who} |`) && line.includes(why))).toHaveLength(1)
    }
    expect(text).toContain('7 attempts, 3 failed')
    expect(text).not.toContain('more')
  })

  test('is told of as many as can be read, and the rest is counted', async () => {
    const text = timelineText(timelineOf(await crowd(2_500)))
    expect(text.match(/^✗ .*$/gm)).toEqual([3, 303, 603, 903, 1203, 1503].map((n) => `✗ Worker r.${n}: AGENT_FAILED: worker ${n}`))
    expect(text).toMatch(/^and 3 more$/m)
  })

  test('is told of what could not be undone', async () => {
    const trip = graph('trip')
      .step('visa', { run: () => 'V', compensate: () => Promise.reject(new Error('closed')) })
      .step('pay', { after: ['visa'], run: () => Promise.reject(new Error('declined')) })
      .output()
    await using at = await timed()
    const run = await at.tutti.start(trip)
    await at.clock.advance(3_600_000)
    const drawn = timelineOf(await journal(run))
    expect(timelineText(drawn).match(/^✗ \w+: .*$/gm)).toEqual([
      '✗ visa: undo of visa: STEP_FAILED: closed',
      '✗ pay: STEP_FAILED: declined',
    ])
    expect(timelineText(drawn, { colour: true })).toContain('\u001b[31m✗ not undone\u001b[0m')
  })

  test('is told of a branch that failed and was undone as well', async () => {
    const shop = topology({
      name: 'shop',
      flows: ['Start -> Clerk -> Packer -> End'],
      agents: { Clerk: { act: (turn) => turn.invoke('Packer'), compensate: () => 0 }, Packer: (turn) => turn.fail('no stock') },
    })
    await using at = await timed()
    const run = await at.tutti.start(shop)
    await at.clock.advance(10)
    expect(timelineText(timelineOf(await journal(run)))).toMatch(
      /^Clerk → Packer .* ↶ undone$[^]*^✗ Clerk → Packer: AGENT_FAILED: no stock$/m,
    )
  })
})

describe('names and texts from models and people', () => {
  const hostile = [
    '</text></svg><script>globalThis.hacked = 1</script>',
    '"><img src=x onerror="globalThis.hacked=1">',
    '\u001b]0;owned\u0007\u001b[2J',
    '\u202Eevil\uFFFE',
    ']]><![CDATA[',
  ]
  const known = new Set(
    'svg title desc style defs pattern rect line circle path text g html head meta body main h1 h2 p div pre br table tr th td'.split(' '),
  )

  /** The journal with every text that is nobody's id or kind made hostile. */
  function poisoned(event: JournalEvent, index: number): JournalEvent {
    const bad = (text: string): string => `${text}${hostile[index % hostile.length]}`
    const walk = (value: unknown, key: string): unknown => {
      if (typeof value === 'string') return /^(type|kind|branch|parent|barrier|id|status|policy|goes|cause)$/.test(key) ? value : bad(value)
      if (Array.isArray(value)) return value.map((item) => walk(item, key))
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, walk(inner, name)]))
    }
    return walk(event, '') as JournalEvent
  }

  test('never become markup or an escape sequence in any picture', async () => {
    const timeline = timelineOf((await teamwork()).map(poisoned))
    expect(timeline.definition).toContain('<')
    for (const file of [timelineSvg(timeline), timelineHtml(timeline)]) {
      const found = [...elements(readMarkup(file))]
      expect(found.map(({ name }) => name).filter((name) => !known.has(name))).toEqual([])
      expect(found.flatMap(({ attributes }) => Object.keys(attributes)).filter((key) => /^on|href|src/.test(key))).toEqual([])
      expect(textOf(readMarkup(file))).toContain(plain(hostile[1] ?? ''))
    }
    // oxlint-disable-next-line no-control-regex
    expect(timelineText(timeline)).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
  })
})

test('what a long line of work adds to a timeline, and to its text, is not looked for among all that it has done before', async () => {
  const looked = async (rounds: number): Promise<{ searched: number; named: number }> => {
    let round = 0
    const passing = topology({
      name: 'passing',
      flows: ['Start -> A -> End', 'A -> B -> A'],
      limits: { maxTurns: 1_000, maxTurnsPerBranch: 1_000 },
      agents: {
        A: (turn) => (round++ < rounds ? turn.invoke('B', round) : turn.finish(round)),
        B: (turn) => turn.invoke('A', round),
      },
    })
    await using tutti = await opened()
    const run = await tutti.start(passing)
    expect(await run.result()).toMatchObject({ status: 'succeeded' })
    const events = await journal(run)
    let searched = 0
    const { findLast } = Array.prototype
    const spy = vi.spyOn(Array.prototype, 'findLast').mockImplementation(function (this: unknown[], is) {
      searched += this.length
      return findLast.call(this, is)
    })
    const timeline = timelineOf(events)
    spy.mockRestore()
    let named = 0
    const lanes = timeline.lanes.map((lane) => ({
      ...lane,
      get agents() {
        named++
        return lane.agents
      },
    }))
    expect(timelineText({ ...timeline, lanes })).toContain('critical path: A')
    return { searched, named }
  }
  const few = await looked(10)
  const many = await looked(100)
  expect(many.searched).toBeLessThan(few.searched * 15)
  expect(many.named).toBe(few.named)
})
