import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { root } from '../docs/snippet.js'

/** What an example prints when a person runs it. */
function printed(name: string): Promise<string> {
  return new Promise((resolve, reject) =>
    execFile(process.execPath, ['--import', 'tsx', join(root, 'examples', `${name}.ts`)], { cwd: root }, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${stdout}\n${stderr}`)),
    ),
  )
}

/** The last line, which says what came out. */
const outcome = (text: string): string => text.trimEnd().split('\n').at(-1) ?? ''

const shows: Readonly<Record<string, (text: string) => void>> = {
  'secret-word': (text) => {
    expect(text).toContain('AgentC        hands R over to AgentD')
    expect(outcome(text)).toBe('→ The secret word is: MARS')
  },
  research: (text) => {
    expect(text).toContain('fails: the book is on loan (and tries again)')
    expect(text).toContain('3 of 5 have answered; the others are told to stop')
    expect(text.match(/asks you: \{"publish"/g)).toHaveLength(2)
    // In the order of the questions, whoever answered first.
    expect(outcome(text)).toBe(
      '→ {"title":"On tea: an introduction","body":"Tea comes from a bush in southern China. Turkey drinks most of it per head. Green tea wants 80 degrees."}',
    )
  },
  trip: (text) => {
    for (const ref of ['flight-1', 'hotel-1']) expect(text.match(new RegExp(`desk +${ref} is cancelled`, 'g'))).toHaveLength(1)
    expect(text).toContain('undo          hotel is undone')
    expect(text).toContain('trip: failed after')
    expect(outcome(text)).toBe('→ failed: the card is declined: 750 euros, rollback: complete')
  },
  release: (text) => {
    expect(text).toContain('build         fails: the Mac is asleep (and tries again)')
    expect(text).toContain('announce      fails: the account is closed')
    expect(outcome(text)).toBe('→ {"published":["v2.0-linux.tgz","v2.0-mac.tgz","v2.0-windows.tgz"],"announced":false}')
  },
  support: (text) => {
    expect(text).toMatch(/Triage → Tech → Billing {2}[█▐?]+/)
    expect(text).toContain('Billing       asks you: may I refund {"order":"order-2","cents":4900}?')
    expect(text.match(/books +refund order-2/g)).toHaveLength(1)
    expect(outcome(text)).toBe('→ order-2 is refunded: 49 euros.')
  },
}

describe.concurrent('an example', () => {
  test.each(Object.entries(shows))('%s runs and shows what it is about', { timeout: 60_000 }, async (name, check) => {
    const text = await printed(name)
    expect(text).toContain('critical path: ')
    check(text)
  })

  test('has its test, whichever it is', () => {
    const found = readdirSync(join(root, 'examples')).map((file) => file.replace(/\.ts$/, ''))
    expect(found.filter((name) => name !== 'play' && name !== 'README.md').sort()).toEqual(Object.keys(shows).sort())
  })
})
