import { topology } from 'tutti'
import { type OrderMatchers, explore, matchers } from 'tutti/testing'
import { describe, expect, test } from 'vitest'
import * as identity from '../planted/identity.js'

declare module 'vitest' {
  interface Matchers<T = any> extends OrderMatchers<T> {}
}
expect.extend(matchers)

const quiet = () =>
  topology({
    name: 'quiet',
    flows: ['Start -> H -> End', 'H <-> A'],
    agents: {
      H: { act: { request: (turn) => turn.fork(['A', 'A']), join: (turn, join) => turn.finish(join.values) } },
      A: { act: (turn) => turn.reply('a') },
    },
  })

describe('the matcher', () => {
  test('lets an independent workflow pass', async () => {
    expect(await explore(quiet)).toBeOrderIndependent()
    expect(await explore(() => identity.planted({ equal: true }))).not.toBeOrderIndependent()
  })

  test('fails with the whole finding, and refuses what is none', async () => {
    const found = await explore(() => identity.planted({ equal: true }))
    expect(() => expect(found).toBeOrderIndependent()).toThrow(/The output depends on the order[\s\S]*It flips when/)
    expect(() => expect(explore).toBeOrderIndependent()).toThrow(/await it first/)
  })
})

/** A name that would be markup, steer a terminal or close an attribute. */
const hostile = '<script>alert(1)</script>\u001b[31m"&'

const named = () => {
  let last = ''
  const act = async (turn: any) => {
    last = turn.agent
    await turn.step(hostile, () => null)
    return turn.reply(last + hostile)
  }
  return topology({
    name: 'named',
    flows: ['Start -> H -> End', 'H <-> A | B'],
    agents: {
      H: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, join) => turn.finish(join.values) } },
      A: { act },
      B: { act },
    },
  })
}

describe('what was found', () => {
  test('is a picture with both schedules, what must change places in red, and the difference below', async () => {
    const found = await explore(() => identity.planted({ equal: false }))
    const svg = found.svg()
    expect(svg).toMatch(/^<svg xmlns=/)
    expect(svg).toContain(`schedule ${found.divergence?.a}`)
    expect(svg).toContain(`schedule ${found.divergence?.b}`)
    expect(svg.match(/stroke="var\(--tutti-bad\)" stroke-width="1.5"/g)?.length).toBeGreaterThanOrEqual(2)
    expect(svg).toContain('What differs')
    expect(found.html()).toMatch(/^<!doctype html>[\s\S]*Content-Security-Policy[\s\S]*What differs/)
  })

  test('says with which seed it is played again, and is found again by it', async () => {
    // Which of the two is late is drawn: with another seed, the schedule shows nothing.
    const drawing = () => {
      let late = 0
      const act = async (turn: any) => {
        if (turn.random() < 0.5) return turn.reply(0)
        await turn.step('think', () => null)
        return turn.reply(++late)
      }
      return topology({
        name: 'drawing',
        flows: ['Start -> H -> End', 'H <-> A | B'],
        agents: {
          H: { act: { request: (turn) => turn.fork(['A', 'B']), join: (turn, join) => turn.finish(join.values) } },
          A: { act },
          B: { act },
        },
      })
    }
    let racy = await explore(drawing, { seed: 1 })
    for (let seed = 2; racy.independent; seed++) racy = await explore(drawing, { seed })
    const told = /^Play (\S+) again: --replay \1 --seed (\S+), or the options \{ replay: '\1', seed: '\2' \}/m.exec(racy.text())
    const [, replay = '', seed = ''] = told ?? []
    expect({ replay, seed }).toEqual({ replay: racy.divergence?.b, seed: racy.seed })
    expect(racy.data().seed).toBe(racy.seed)
    const again = await explore(drawing, { replay, seed })
    expect(again.outcomes[0]?.result).toEqual(racy.outcomes.find(({ schedule }) => schedule !== 'first')?.result)
    const stuck = await explore(
      () => topology({ name: 'stuck', flows: ['Start -> A -> End'], agents: { A: () => new Promise(() => {}) } }),
      {
        seed: 3,
        patienceMs: 5,
      },
    )
    expect(stuck.text()).toContain("--replay first --seed 3, or the options { replay: 'first', seed: '3' }")
  })

  test('is escaped, whatever agents and steps are called', async () => {
    const found = await explore(named)
    expect(found.independent).toBe(false)
    for (const text of [found.svg(), found.html(), found.junit()]) {
      expect(text).not.toContain('<script')
      expect(text).not.toContain('\u001b')
      expect(text).toContain('&lt;script&gt;')
    }
    expect(found.text()).not.toContain('\u001b')
    expect(found.text({ color: true })).toContain('\u001b[31m')
  })

  test('is JUnit that says failed or passed, and plain data', async () => {
    const found = await explore(named)
    expect(found.junit()).toMatch(/<testsuites tests="1" failures="1">[\s\S]*<failure type="output"/)
    expect((await explore(quiet)).junit()).toMatch(/failures="0"[\s\S]*<system-out>✓ The same outcome in every order/)
    const data = found.data()
    expect(JSON.parse(JSON.stringify(data))).toEqual(data)
    expect(data).toMatchObject({ independent: false, divergence: { kind: 'output', pictures: [{ lanes: ['r', 'r.0', 'r.1'] }, {}] } })
  })
})
