import { PassThrough } from 'node:stream'
import { describe, expect, test, vi } from 'vitest'
import { Terminal } from '../../src/cli/terminal.js'
import { files, patience, Place } from './place.js'
import { hasTmux, Screen } from './screen.js'

vi.setConfig(patience)

test('a terminal that gives its size as 0 does not know it, and is taken for one of usual size', () => {
  const sized = (size: object): Terminal => {
    const stream = Object.assign(new PassThrough(), size) as unknown as NodeJS.WriteStream
    return new Terminal(stream, stream, {})
  }
  const [none, unknown, small] = [sized({}), sized({ columns: 0, rows: 0 }), sized({ columns: 60, rows: 12 })]
  for (const { columns, width, rows } of [none, unknown]) expect([columns, width, rows]).toEqual([80, 100, 24])
  expect([small.columns, small.width, small.rows]).toEqual([60, 60, 12])
})

// Without tmux there is no real terminal to test in: `.ci/run` installs it, so that nothing is ever skipped there.
describe.skipIf(!hasTmux())('in a real terminal', () => {
  test('the demo is watched live, a person answers, and is told where to look next; show draws what happened', async () => {
    using place = new Place()
    using screen = new Screen(place)
    screen.type('tutti demo; echo "ended $?"')
    await screen.shows(/Shall I tell everybody\? \[Y\/n\]/)
    screen.press('Enter')
    const seen = await screen.shows(/ended 0/)
    for (const part of ['1/3', '2/3', '3/3', 'The letters make MARS.', 'The secret word is: MARS', 'Where to look next'])
      expect(seen).toContain(part)
    // The tree was drawn over, in colour, while it ran.
    // oxlint-disable-next-line no-control-regex -- it is what must be there
    expect(screen.written()).toMatch(/\u001b\[\d+A\u001b\[0J/)
    expect(seen).toMatch(/✓ AgentD r\.2/)
    screen.type('clear; tutti show @last; tutti ls; echo "looked $?"')
    const shown = await screen.shows(/looked 0/)
    expect(shown).toMatch(/AgentA.*\n/)
    expect(shown).toMatch(/secret-word +succeeded/)
  })

  test('the demo goes on by itself where nobody says anything', async () => {
    using place = new Place()
    using screen = new Screen(place)
    screen.type('tutti demo; echo "ended $?"')
    await screen.shows(/Shall I tell everybody\? \[Y\/n\], yes in 10 s/)
    await screen.shows(/Nobody answers: the demo says yes\.[^$]*The secret word is: MARS[^$]*ended 0/)
  })

  test('Ctrl-C pauses and says how to resume; resume and answer go on from there', async () => {
    using place = new Place()
    place.write('waiting.mjs', files.waiting)
    place.write('asking.ts', files.asking)
    using screen = new Screen(place)
    screen.type('tutti run waiting.mjs --id w; echo "ended $?"')
    await screen.shows(/▶ second/)
    screen.press('C-c')
    // The terminal has shown the key where the tree is drawn over.
    await screen.shows(/\nwaiting w paused.*\n.*✓ first.*\n.*▶ second.*\n.*third.*\npaused w; go on with: tutti resume w\s+ended 130/)
    place.write('go', '')
    screen.type('clear; tutti resume w; echo "ended $?"')
    const resumed = await screen.shows(/ended 0/)
    expect(resumed).toMatch(/✓ first.*\n.*✓ second.*"gone on"/)
    screen.type(`clear; tutti run asking.ts --id a -i '"tea?"'; echo "ended $?"`)
    await screen.shows(/Clerk asks \{"about":"tea\?"\}\s+answer it with: tutti answer a r~1 '<json>'\s+ended 4/)
    screen.type(`clear; tutti answer a r~1 '"yes"'; echo "ended $?"`)
    await screen.shows(/\{"said":"yes"\}\s+ended 0/)
  })

  test('what code prints stays above the tree, which is drawn once, whether a line is finished or not', async () => {
    using place = new Place()
    place.write(
      'printing.mjs',
      `import { existsSync } from 'node:fs'
import { topology } from 'tutti'
const there = async (file) => { while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 10)) }
process.stdout.write('loaded')
export default topology({
  name: 'printing',
  flows: ['Start -> A -> End'],
  agents: {
    A: async (turn) => {
      await there('begin')
      for (let line = 1; line <= 5; line++) console.log('line ' + line)
      process.stderr.write('be')
      await there('more')
      process.stdout.write(Buffer.from('gun\\n'))
      await there('go')
      process.stdout.write('unfinished', () => console.log(', then finished'))
      await there('end')
      process.stdout.write('open')
      return turn.finish('the end')
    },
  },
})
`,
    )
    using screen = new Screen(place)
    screen.type('clear; tutti run printing.mjs --id p; echo "ended $?"')
    await screen.shows(/^loaded\nprinting p running.*\n.*▶ A/)
    place.write('begin', '')
    await screen.shows(/line 5\nprinting p running.*\n.*▶ A/)
    place.write('more', '')
    await screen.shows(/line 5\nbegun\nprinting p running.*\n.*▶ A/)
    place.write('go', '')
    await screen.shows(/unfinished, then finished\nprinting p running.*\n.*▶ A/)
    place.write('end', '')
    const seen = await screen.shows(/ended 0/)
    const lines = ['loaded', ...[1, 2, 3, 4, 5].map((line) => `line ${line}`), 'begun', 'unfinished, then finished', 'open']
    expect(seen).toMatch(new RegExp(`^${lines.join('\\n')}\\nprinting p succeeded.*\\n.*✓ A.*\\nthe end\\nended 0`))
  })

  test('with NO_COLOR there is not one escape sequence, and no answer at the prompt pauses the demo', async () => {
    using place = new Place()
    using screen = new Screen(place, { NO_COLOR: '1' })
    screen.type('echo begin; tutti demo; echo "ended $?"')
    await screen.shows(/Shall I tell everybody\? \[Y\/n\]/)
    expect(screen.written().split('begin\r\n').at(-1)).not.toContain('\u001b')
    screen.press('C-c')
    await screen.shows(/go on with: tutti resume \w+\s+ended 130/)
  })

  test('a question that somebody else has answered, or whose run has ended, is not asked on', async () => {
    using place = new Place()
    using screen = new Screen(place)
    screen.type('tutti demo; echo "ended $?"')
    await screen.shows(/Shall I tell everybody\? \[Y\/n\]/)
    const [ask] = await place.json<{ id: string; runId: string }[]>('asks')
    await place.tutti('answer', ask?.runId ?? '', ask?.id ?? '', 'false', '--detach')
    await screen.shows(/somebody else has answered[^$]*The secret word stays a secret\.[^$]*ended 0/)
    screen.type('clear; echo again; tutti demo; echo "ended $?"')
    await screen.shows(/^again\n[^]*Shall I tell everybody\? \[Y\/n\]/m)
    await place.tutti('cancel', '@last', '--reason', 'enough')
    await screen.shows(/the run has ended[^$]*was cancelled: enough[^$]*ended 1/)
  })
})
