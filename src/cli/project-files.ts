/** What a new project is made with. */
export interface ProjectFacts {
  readonly name: string
  /** The versions it depends on. */
  readonly tutti: string
  readonly tsx: string
}

/** The files of a new project: a workflow, its test with the race check, and how to use them. */
export function projectFiles({ name, tutti, tsx }: ProjectFacts): Readonly<Record<string, string>> {
  const scripts = {
    start: 'tutti run workflow.ts --input "\\"Tutti means all together.\\""',
    test: 'node --import tsx --test workflow.test.ts',
    check: 'tutti check workflow.ts --schedules all --input "\\"Tutti means all together.\\""',
  }
  const settings = { name, private: true, type: 'module', scripts, dependencies: { tutti }, devDependencies: { tsx } }
  return {
    'package.json': `${JSON.stringify(settings, null, 2)}\n`,
    '.gitignore': 'node_modules/\n.tutti/\n',
    'workflow.ts': workflow,
    'workflow.test.ts': test,
    'README.md': readme(name),
  }
}

const workflow = `import { topology } from 'tutti'

/** Two reviewers look at a text at the same time; the editor waits for both and puts together what they say. */
export default topology({
  name: 'review',
  flows: ['Start -> Editor -> End', 'Editor -> Style | Facts', 'Style | Facts -> Editor'],
  agents: {
    Editor: {
      act: {
        request: (turn) => turn.fork(['Style', 'Facts'], { request: turn.request }),
        join: (turn, reviews) => turn.finish({ text: turn.request, reviews: reviews.values }),
      },
    },
    Style: (turn) => turn.reply(\`\${String(turn.request).split(' ').length} words\`),
    // What happens inside a step is recorded, and never happens again once it is.
    Facts: async (turn) => turn.reply(await turn.step('look it up', () => 'nothing to object')),
  },
})
`

const test = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from 'tutti'
import { explore } from 'tutti/testing'
import review from './workflow.js'

test('the editor is given both reviews, in the order in which they were asked for', async () => {
  await using tutti = await open({ store: 'memory:' })
  const output = await tutti.execute(review, { input: 'one two' })
  assert.deepEqual(output, { text: 'one two', reviews: ['2 words', 'nothing to object'] })
})

test('whoever answers first, the outcome is the same', async () => {
  const found = await explore(review, { input: 'one two', schedules: 'all' })
  assert.ok(found.independent, found.text())
})
`

const readme = (name: string): string => `# ${name}

\`\`\`
npm install
npm start        # runs workflow.ts; its journal is kept in .tutti/
npm test         # its tests, with the race check
npm run check    # the race check by itself, in words
\`\`\`

\`npx tutti show @last\` draws what happened, \`npx tutti --help\` lists everything else. The agents in \`workflow.ts\` are functions; one that
has \`instructions\` instead is answered by a language model.
`
