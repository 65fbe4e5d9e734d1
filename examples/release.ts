// A release as a graph: review and builds side by side, a person says go, then it is published and announced.
import { graph, type Provided, type Resource, resource, topology } from 'tutti'
import { z } from 'zod'
import { isMain, play } from './play.js'

const Change = z.object({ id: z.string(), diff: z.string() })
const Release = z.object({ tag: z.string(), changes: z.array(Change), targets: z.array(z.enum(['linux', 'mac', 'windows'])) })

/** The machines that build and the places that are told. Yours are real; these only take their time. */
interface Shop {
  compile(target: string, tag: string): Promise<string>
  publish(artifacts: readonly string[], key: string): Promise<readonly string[]>
  post(text: string, key: string): Promise<void>
}
const shop: Resource<Shop> = resource<Shop>('shop')

/** Two reviewers who read at the same time. A whole topology can be a step. */
const review = topology({
  name: 'review',
  input: z.array(Change),
  output: z.object({ risk: z.number(), notes: z.array(z.string()) }),
  flows: ['Start -> Lead -> End', 'Lead <-> Security | Style'],
  agents: {
    Security: {
      input: z.array(Change),
      output: z.object({ risk: z.number(), note: z.string() }),
      act: (turn) => turn.reply({ risk: 0.2, note: 'no secrets in it' }),
    },
    Style: {
      input: z.array(Change),
      output: z.object({ risk: z.number(), note: z.string() }),
      act: (turn) => turn.reply({ risk: 0.1, note: 'reads well' }),
    },
    Lead: {
      input: z.array(Change),
      act: {
        request: (turn, changes) =>
          turn.fork(
            [
              { to: 'Security', request: changes },
              { to: 'Style', request: changes },
            ],
            { join: 'settled' },
          ),
        join: (turn, { values }) =>
          turn.finish({ risk: Math.max(...values.map(({ risk }) => risk)), notes: values.map(({ note }) => note) }),
      },
    },
  },
})

const release = graph('release', { input: Release })
  .step('review', { input: ({ input }) => input.changes, run: review })
  .step('build', {
    each: ({ input }) => input.targets,
    concurrency: 2,
    retry: { attempts: 3, backoffMs: 20 },
    run: ({ item, input, use }) => use(shop).compile(item, input.tag),
  })
  .ask('approve', {
    after: ['review', 'build'],
    question: ({ steps, input }) => ({ ship: input.tag, risk: steps.review.risk, artifacts: steps.build }),
    schema: z.object({ go: z.boolean() }),
    timeoutMs: 3 * 86_400_000,
  })
  .step('publish', {
    after: ['approve', 'build'],
    when: ({ steps }) => steps.approve.go,
    run: ({ steps, use, idempotencyKey }) => use(shop).publish(steps.build, idempotencyKey),
  })
  .step('announce', {
    after: ['publish'],
    onError: { fallback: false },
    run: async ({ input, use, idempotencyKey }) => {
      await use(shop).post(`${input.tag} is out`, idempotencyKey)
      return true
    },
  })
  .output(({ steps }) => ({ published: steps.publish ?? [], announced: steps.announce ?? false }))

export default release

const took = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The Mac is asleep when it is first called, and nobody has paid for the channel that posts. */
function workshop(): Shop {
  let asleep = true
  return {
    compile: async (target, tag) => {
      await took(target === 'windows' ? 160 : 80)
      if (target === 'mac' && asleep) {
        asleep = false
        throw new Error('the Mac is asleep')
      }
      return `${tag}-${target}.tgz`
    },
    publish: async (artifacts) => {
      await took(40)
      return artifacts
    },
    post: () => Promise.reject(new Error('the account is closed')),
  }
}

export const resources: readonly Provided[] = [shop.of(workshop())]

if (isMain(import.meta.url))
  await play(release, {
    input: { tag: 'v2.0', changes: [{ id: 'c1', diff: '+ hello' }], targets: ['linux', 'mac', 'windows'] },
    resources,
    answer: () => ({ go: true }),
  })
