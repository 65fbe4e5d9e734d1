import type { CliCommand } from './cli-command.js'

/** A command by its name. Its code is loaded when it is called: a start costs what the command needs, and no more. */
export interface Listed {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<{ readonly command: CliCommand }>
}

export const commands: readonly Listed[] = [
  { name: 'demo', summary: 'let five agents find a secret word, live, with no key and no network', load: () => import('./demo.js') },
  { name: 'run', summary: "run a file's default export", load: () => import('./run.js') },
  { name: 'ls', summary: 'list runs', load: () => import('./ls.js') },
  { name: 'show', summary: 'show a run', load: () => import('./show.js') },
  { name: 'tail', summary: "follow a run's events to its end", load: () => import('./tail.js') },
  { name: 'report', summary: 'print the report of a run', load: () => import('./report.js') },
  { name: 'export', summary: 'write a run as a picture, a page, a journal or a trace', load: () => import('./export.js') },
  { name: 'pause', summary: 'pause a run', load: () => import('./pause.js') },
  { name: 'resume', summary: 'resume a run and go on to its next stop', load: () => import('./resume.js') },
  { name: 'cancel', summary: 'cancel a run', load: () => import('./cancel.js') },
  { name: 'asks', summary: 'list what people are asked', load: () => import('./asks.js') },
  { name: 'answer', summary: 'answer a question and go on to the next stop', load: () => import('./answer.js') },
  { name: 'agents', summary: 'list agents; pause, resume, stop, start or terminate one', load: () => import('./agents.js') },
  { name: 'check', summary: 'play a workflow in many orders, and compare what comes of them', load: () => import('./check.js') },
  {
    name: 'replay',
    summary: 'execute the code of a recorded run again with what its steps gave, and compare',
    load: () => import('./replay.js'),
  },
  { name: 'graph', summary: 'draw who may call whom, or what comes after what', load: () => import('./graph.js') },
  { name: 'doctor', summary: 'look at what tutti needs, and say how to mend it', load: () => import('./doctor.js') },
  { name: 'init', summary: 'make a project with a workflow, a test and the race check', load: () => import('./init.js') },
  { name: 'gc', summary: 'delete runs that ended long ago', load: () => import('./gc.js') },
  { name: 'completion', summary: 'print a completion script for bash, zsh or fish', load: () => import('./completion.js') },
]
