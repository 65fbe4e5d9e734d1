// A research team: five researchers at once, three findings are enough, and a person approves what is published.
import { type Provided, type Resource, resource, topology } from 'tutti'
import { z } from 'zod'
import { isMain, play } from './play.js'

const Brief = z.object({ topic: z.string(), questions: z.array(z.string()).min(3) })
const Finding = z.object({ question: z.string(), claim: z.string() })
const Article = z.object({ title: z.string(), body: z.string() })

/** Where researchers look things up. In your project this is a search engine; here it is a shelf of books. */
export interface Library {
  lookUp(question: string, signal: AbortSignal): Promise<string>
}
export const library: Resource<Library> = resource<Library>('library')

const research = topology({
  name: 'research',
  input: Brief,
  output: Article,
  flows: ['Start -> Editor', 'Editor <-> Researcher | Writer', 'Editor -> User | End'],
  state: () => ({ findings: [] as z.infer<typeof Finding>[], draft: null as z.infer<typeof Article> | null }),
  merge: { findings: 'mine', draft: 'mine' },
  agents: {
    Researcher: {
      input: z.string(),
      output: Finding,
      retry: { attempts: 2, backoffMs: 0 },
      act: async (turn) => {
        // Recorded once: after a crash the answer is taken from the journal, not looked up again.
        const claim = await turn.step('look it up', ({ use, signal }) => use(library).lookUp(turn.request, signal))
        return turn.reply({ question: turn.request, claim })
      },
    },
    Writer: {
      input: z.object({ topic: z.string(), findings: z.array(Finding), note: z.string() }),
      output: Article,
      act: async (turn) => {
        const { topic, findings, note } = turn.request
        await turn.sleep(250) // durable: it thinks on after a restart, for what was left
        return turn.reply({ title: `On ${topic}${note === '' ? '' : `: ${note}`}`, body: findings.map(({ claim }) => claim).join(' ') })
      },
    },
    Editor: {
      input: Brief,
      answer: z.object({ approved: z.boolean(), note: z.string().default('') }),
      act: {
        request: (turn, { questions }) =>
          turn.fork(
            questions.map((request) => ({ to: 'Researcher', request })),
            { join: { policy: { quorum: 3 }, timeoutMs: 60_000, stragglers: 'cancel' } },
          ),
        join: (turn, replies) => {
          const [draft] = replies.from('Writer')
          if (draft !== undefined) return turn.ask({ publish: draft }, { state: { ...turn.state, draft } })
          const findings = replies.from('Researcher')
          const request = { topic: turn.request.topic, findings, note: '' }
          return turn.fork([{ to: 'Writer', request }], { state: { ...turn.state, findings } })
        },
        answer: (turn, { approved, note }) => {
          if (approved && turn.state.draft !== null) return turn.finish(turn.state.draft)
          return turn.fork([{ to: 'Writer', request: { topic: turn.request.topic, findings: turn.state.findings, note } }])
        },
      },
    },
  },
})

export default research

const shelf: Readonly<Record<string, { readonly ms: number; readonly says: string }>> = {
  'Where does tea come from?': { ms: 90, says: 'Tea comes from a bush in southern China.' },
  'Who drinks most of it?': { ms: 40, says: 'Turkey drinks most of it per head.' },
  'How hot should it be?': { ms: 130, says: 'Green tea wants 80 degrees.' },
  'What did it cost in 1700?': { ms: 30_000, says: 'A pound cost a maid a month.' },
  'Does it keep one awake?': { ms: 30_000, says: 'A cup has half the caffeine of coffee.' },
}

/** Slow books, and one that is on loan when it is first asked for. */
function bookshelf(): Library {
  let onLoan = true
  return {
    lookUp: async (question, signal) => {
      const { ms, says } = shelf[question] ?? { ms: 10, says: 'Nobody knows.' }
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(resolve, ms)
        signal.addEventListener('abort', () => {
          clearTimeout(timer)
          reject(signal.reason)
        })
      })
      if (question === 'Who drinks most of it?' && onLoan) {
        onLoan = false
        throw new Error('the book is on loan')
      }
      return says
    },
  }
}

export const resources: readonly Provided[] = [library.of(bookshelf())]

/** The first time the person wants another title, then it is good. */
function editorInChief(): () => unknown {
  let asked = 0
  return () => (asked++ === 0 ? { approved: false, note: 'an introduction' } : { approved: true })
}

if (isMain(import.meta.url))
  await play(research, { input: { topic: 'tea', questions: Object.keys(shelf) }, resources, answer: editorInChief() })
