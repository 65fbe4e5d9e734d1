import { Option } from 'commander'
import type { Definition } from '../define/definition.js'
import { diagramOf } from '../inspect/diagram.js'
import { diagramMermaid } from '../inspect/diagram-mermaid.js'
import { diagramSvg } from '../inspect/diagram-svg.js'
import { diagramText } from '../inspect/diagram-text.js'
import type { CliCommand } from './cli-command.js'
import { jsonOption, outputOption } from './cli-command.js'
import { exitCode } from './exit-code.js'
import { loadFile } from './load-file.js'
import { jsonText, type Terminal } from './terminal.js'
import { written } from './written.js'

interface Options {
  readonly svg?: boolean
  readonly mermaid?: boolean
  readonly output?: string
  readonly json?: boolean
}

export const command: CliCommand = {
  spec: (command) =>
    command
      .argument('<file>', 'a file that exports a topology or a graph as its default')
      .addOption(new Option('--svg', 'as a picture').conflicts(['mermaid', 'json']))
      .addOption(new Option('--mermaid', 'as Mermaid').conflicts(['svg', 'json']))
      .option(...outputOption)
      .option(...jsonOption),
  run: async (terminal, [file], options: Options) => {
    const { definition } = await loadFile({ file: file as string, export: 'default' })
    written(terminal, textOf(terminal, definition, options), options.output)
    return exitCode.done
  },
}

function textOf(terminal: Terminal, definition: Definition, { svg, mermaid, json, output }: Options): string {
  if (json === true) return `${jsonText(diagramOf(definition), 2)}\n`
  if (svg === true) return diagramSvg(definition)
  if (mermaid === true) return diagramMermaid(definition)
  return diagramText(definition, { width: terminal.width, colour: output === undefined && terminal.isColoured })
}
