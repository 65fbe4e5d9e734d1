/** A slow agent keeps what it read while another takes twenty turns, and then writes it back. */
import { type Provided, type Resource, resource, topology } from 'tutti'

interface Pages {
  read(): { readonly text: string; readonly version: number }
  write(text: string): void
}

const pages: Resource<Pages> = resource('pages')

export function resources(): readonly Provided[] {
  let page = { text: '', version: 0 }
  return [
    pages.perRun(() => ({
      read: () => page,
      write: (text) => {
        page = { text, version: page.version + 1 }
      },
    })),
  ]
}

const turns = 20

/** The undo history holds fewer versions than the fast one makes: what is older is overwritten without a question. */
export function planted() {
  return topology({
    name: 'starvation',
    flows: ['Start -> Hub -> End', 'Hub <-> Slow | Fast', 'Fast <-> Again', 'Again -> Hub'],
    agents: {
      Hub: {
        act: {
          request: (turn) => turn.fork([{ to: 'Slow' }, { to: 'Fast', request: 1 }]),
          join: (turn, join) => turn.finish(join.slots.map((slot) => (slot.status === 'arrived' ? slot.value : slot.status))),
        },
      },
      Slow: {
        act: async (turn) => {
          const page = turn.use(pages)
          const { version } = await turn.step('read', () => page.read())
          const now = await turn.step('look again', () => page.read().version)
          return turn.reply(now - version >= turns - 2 ? 'overwrote everything' : 'merged')
        },
      },
      Fast: { act: async (turn) => again(turn, 'Again') },
      Again: { act: async (turn) => again(turn, 'Fast') },
    },
  })
}

function again(turn: any, next: string) {
  turn.use(pages).write(`${turn.request}`)
  return turn.request >= turns ? turn.invoke('Hub', 'done') : turn.invoke(next, turn.request + 1)
}
