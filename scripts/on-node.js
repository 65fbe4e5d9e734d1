// Runs an installed command on another version of Node, which is fetched once: `node scripts/on-node.js 24 vitest run test/stores`.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const [version = '', ...rest] = process.argv.slice(2)
const [command = '', ...args] = rest[0] === '--' ? rest.slice(1) : rest
if (!/^\d+(\.\d+)*$/.test(version) || command === '') {
  console.error('usage: node scripts/on-node.js <version> [--] <command> [arguments]')
  process.exit(2)
}

const node = fetched()
const path = `${dirname(node)}${delimiter}${process.env['PATH'] ?? ''}`
process.exit(spawnSync(node, [binOf(command), ...args], { cwd: root, stdio: 'inherit', env: { ...process.env, PATH: path } }).status ?? 1)

/** Where that Node is. npm has each as a package, whose only file is the program. */
function fetched() {
  const folder = join(root, 'node_modules', '.cache', `node-${version}`)
  const program = join(folder, 'node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  // Else npm would take the project around it for its own.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const install = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-save', `node@${version}`]
  const { status } = spawnSync('npm', install, { stdio: ['ignore', 2, 2], shell: process.platform === 'win32' })
  if (status !== 0 || !existsSync(program)) {
    console.error(`Node ${version} could not be fetched. It needs a network.`)
    process.exit(1)
  }
  return program
}

/**
 * The script of an installed package that has a command of this name.
 * @param {string} name
 */
function binOf(name) {
  const folder = join(root, 'node_modules', name)
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return join(folder, typeof bin === 'string' ? bin : bin[name])
}
