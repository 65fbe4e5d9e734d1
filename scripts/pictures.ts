// Draws the pictures of the documentation: `npm run pictures`. They come from runs of the examples on a clock that stands still until it is
// told, in which no two things happen at once, so that they are the same each time. A test holds the files in docs/pictures to them.
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Definition, diagramSvg, type JournalEvent, open, type Provided, timelineOf, timelineSvg, topology } from 'tutti'
import { virtualClock } from 'tutti/testing'
import release from '../examples/release.js'
import research, { library } from '../examples/research.js'
import secretWord from '../examples/secret-word.js'
import trip, { desk } from '../examples/trip.js'

type VirtualClock = ReturnType<typeof virtualClock>

/** What a run is given; each answer so long after the last thing that happened. */
interface Given {
  readonly input: unknown
  readonly resources?: readonly Provided[]
  readonly answers?: readonly { readonly afterMs: number; readonly value: unknown }[]
}

const folder = fileURLToPath(new URL('../docs/pictures/', import.meta.url))

/** Each picture by the name of its file. */
export async function pictures(): Promise<Record<string, string>> {
  return {
    'research.svg': await timeline(research, researchTeam),
    'trip.svg': await timeline(trip, travelDesk),
    'crowd.svg': await timeline(crowd(), () => ({ input: 1_000 })),
    'secret-word-topology.svg': diagramSvg(secretWord),
    'release-graph.svg': diagramSvg(release),
  }
}

async function timeline(definition: Definition<any>, given: (clock: VirtualClock) => Given): Promise<string> {
  const clock = virtualClock(Date.UTC(2026, 0, 5, 9))
  const { input, resources = [], answers = [] } = given(clock)
  const tutti = await open({ store: 'memory:', clock, resources })
  const run = await tutti.start(definition, { id: definition.name, input })
  await clock.advance(3_000)
  for (const { afterMs, value } of answers) {
    await clock.advance(afterMs)
    for (const { id } of await run.asks()) await run.answer(id, value, { by: 'Ada' })
    await clock.advance(3_000)
  }
  const events: JournalEvent[] = []
  for await (const event of run.events()) events.push(event)
  await Promise.all([tutti.close(), clock.advance(60_000)])
  return timelineSvg(timelineOf(events))
}

function researchTeam(clock: VirtualClock): Given {
  const took = [900, 400, 1_300, 60_000, 60_000]
  const questions = ['origin', 'drinkers', 'heat', 'price', 'sleep'].map((about) => `Tea: ${about}?`)
  let onLoan = true
  return {
    input: { topic: 'tea', questions },
    resources: [
      library.of({
        lookUp: async (question, signal) => {
          await clock.sleep(took[questions.indexOf(question)] ?? 0, signal)
          if (signal.aborted) {
            await clock.sleep(100 + 10 * questions.indexOf(question)) // puts the book back first
            throw signal.reason
          }
          if (question === questions[1] && onLoan) {
            onLoan = false
            throw new Error('the book is on loan')
          }
          return `${question} It is known.`
        },
      }),
    ],
    answers: [
      { afterMs: 2 * 3_600_000, value: { approved: false, note: 'an introduction' } },
      { afterMs: 20 * 60_000, value: { approved: true } },
    ],
  }
}

function travelDesk(clock: VirtualClock): Given {
  return {
    input: { city: 'Lisbon', nights: 3 },
    resources: [
      desk.of({
        book: async (kind) => {
          await clock.sleep({ flight: 900, hotel: 600 }[kind] ?? 500)
          if (kind === 'car') throw new Error('there is no car left')
          return { ref: `${kind}-1`, cents: 30_000 }
        },
        cancel: (ref) => clock.sleep(ref === 'hotel-1' ? 800 : 500),
        charge: async () => {
          await clock.sleep(400)
          throw new Error('the card is declined')
        },
      }),
    ],
  }
}

/** A fork of as many as it is asked for, of which a few fail and one is slow. */
function crowd(): Definition<unknown> {
  return topology({
    name: 'crowd',
    flows: ['Start -> Boss -> End', 'Boss <-> Worker'],
    agents: {
      Boss: {
        act: {
          request: (turn) => {
            const width = Number(turn.request)
            return turn.fork(
              Array.from({ length: width }, (_, request) => ({ to: 'Worker' as const, request })),
              { join: 'settled' },
            )
          },
          join: (turn, { values }) => turn.finish(values.length),
        },
      },
      Worker: async (turn) => {
        const index = Number(turn.request)
        await turn.sleep(index === 512 ? 2_400 : 300 + ((index * 37) % 1_100))
        if (index % 400 === 7) throw new Error('out of reach')
        return turn.reply(index)
      },
    },
  })
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  mkdirSync(folder, { recursive: true })
  for (const [name, svg] of Object.entries(await pictures())) {
    writeFileSync(new URL(name, pathToFileURL(folder)), svg)
    console.log(`docs/pictures/${name}`)
  }
}
