import { z } from 'zod'
import { topology, type Topology } from 'tutti'

export interface Brief {
  topic: string
  questions: string[]
}
export interface Article {
  title: string
  body: string
}
const Brief = z.object({ topic: z.string(), questions: z.array(z.string()).min(1) })
const Article = z.object({ title: z.string(), body: z.string() })
const Finding = z.object({ claim: z.string(), sources: z.array(z.url()) })

export const research: Topology<Brief, Article, 'Editor' | 'Researcher' | 'Writer'> = topology({
  name: 'research',
  input: Brief,
  output: Article,
  flows: ['Start -> Editor', 'Editor <-> Researcher | Writer', 'Editor -> User | End'],
  state: () => ({ findings: [] as z.infer<typeof Finding>[], draft: undefined as Article | undefined }),
  merge: { findings: 'mine', draft: 'mine' },
  agents: {
    Researcher: { instructions: 'Answer with sources.', input: z.string(), output: Finding },
    Writer: {
      instructions: 'Write the article.',
      input: z.object({ topic: z.string(), findings: z.array(Finding), note: z.string().default('') }),
      output: Article,
    },
    Editor: {
      input: Brief,
      answer: z.object({ approved: z.boolean(), note: z.string().default('') }),
      act: {
        request: (turn, { questions }) =>
          turn.fork(
            questions.map((request) => ({ to: 'Researcher', request })),
            {
              join: { policy: { ratio: 0.6 }, timeoutMs: 120_000, insufficient: 'ask' },
            },
          ),
        join: (turn, replies) => {
          const [draft] = replies.from('Writer')
          if (draft) return turn.ask({ publish: draft }, { state: { ...turn.state, draft } })
          const findings = replies.from('Researcher')
          return turn.fork([{ to: 'Writer', request: { topic: turn.request.topic, findings } }], { state: { ...turn.state, findings } })
        },
        answer: (turn, { approved, note }) =>
          approved
            ? turn.finish(turn.state.draft!)
            : turn.fork([{ to: 'Writer', request: { topic: turn.request.topic, findings: turn.state.findings, note } }]),
      },
    },
  },
})
