import type { Parting } from './detach.js'
import { errorLines } from './error-lines.js'
import { nothingLeft } from './leaving.js'
import { Terminal } from './terminal.js'
import { pieces } from './shown.js'
import { begin, type Work } from './work.js'

// The process that `--detach` starts: it is told what to do, says whether that was begun, and goes on alone.
process.once('message', (work) => {
  // It ends where its work does: before that, code that was loaded waits for what never comes.
  process.once('beforeExit', () => process.exit(nothingLeft))
  void perform(work as Work)
})

async function perform(work: Work): Promise<void> {
  const terminal = new Terminal(process.stdout, process.stderr, process.env)
  try {
    const { session, run, following, executes } = await begin(terminal, work)
    await say({ started: run.id })
    if (executes) await session.drive(run, following)
    await session[Symbol.asyncDispose]()
  } catch (error) {
    const { lines, exit } = errorLines(error)
    const [first = '', ...rest] = lines.map((line) =>
      pieces(line)
        .map(({ text }) => text)
        .join(''),
    )
    await say({ refused: first.replace(/^tutti: /, ''), more: rest, exit })
  }
  process.exit()
}

function say(parting: Parting): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) return resolve()
    process.send(parting, undefined, undefined, () => {
      // After the first word there is nothing more to say: whoever started this may go.
      if (process.connected) process.disconnect()
      resolve()
    })
  })
}
