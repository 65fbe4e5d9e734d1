import { z } from 'zod'
import { graph, resource, topology, type Graph, type Resource } from 'tutti'

const Change = z.object({ id: z.string(), diff: z.string() })

const review = topology({
  name: 'review',
  input: z.object({ changes: z.array(Change) }),
  output: z.object({ risk: z.number(), notes: z.array(z.string()) }),
  flows: ['Start -> Lead -> End', 'Lead <-> Security | Style'],
  agents: {
    Security: {
      instructions: 'Find security problems.',
      input: z.array(Change),
      output: z.object({ risk: z.number(), notes: z.string() }),
    },
    Style: { instructions: 'Find what reads badly.', input: z.array(Change), output: z.object({ risk: z.number(), notes: z.string() }) },
    Lead: {
      input: z.object({ changes: z.array(Change) }),
      act: {
        request: (turn, { changes }) =>
          turn.fork(
            [
              { to: 'Security', request: changes },
              { to: 'Style', request: changes },
            ],
            { join: 'settled' },
          ),
        join: (turn, { values }) => turn.finish({ risk: Math.max(0, ...values.map((v) => v.risk)), notes: values.map((v) => v.notes) }),
      },
    },
  },
})

export interface Shop {
  compile(target: string, tag: string, signal: AbortSignal): Promise<string>
  upload(image: string, key: string): Promise<string>
  remove(artifact: string, key: string): Promise<void>
  publish(artifacts: readonly string[], key: string): Promise<readonly string[]>
  post(text: string, key: string): Promise<void>
}
export const shop: Resource<Shop> = resource<Shop>('shop')

export interface Release {
  tag: string
  changes: { id: string; diff: string }[]
  targets: ('linux' | 'mac' | 'windows')[]
}
const Release = z.object({ tag: z.string(), changes: z.array(Change), targets: z.array(z.enum(['linux', 'mac', 'windows'])) })

export const release: Graph<Release, { published: readonly string[]; announced: boolean }> = graph('release', {
  input: Release,
  version: '2',
  continues: ['1'],
})
  .step('review', { input: ({ input }) => ({ changes: input.changes }), run: review })
  .step('build', {
    each: ({ input }) => input.targets,
    concurrency: 2,
    timeoutMs: 600_000,
    run: async ({ item, input, step }) => {
      const image = await step('compile', ({ signal, use }) => use(shop).compile(item, input.tag, signal))
      return step('upload', ({ idempotencyKey, use }) => use(shop).upload(image, idempotencyKey))
    },
    compensate: ({ output, use, idempotencyKey }) => use(shop).remove(output, idempotencyKey),
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
