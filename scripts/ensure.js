// Installs what package-lock.json asks for, if it is not there already. Says nothing when there is nothing to do.
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isInstalled } from './installed.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

if (!isInstalled(root)) {
  console.error('Installing what package-lock.json asks for…')
  process.exit(install())
}

function install() {
  // --include=dev: the build needs them also where NODE_ENV says production.
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund']
  const npm = process.env.npm_execpath // the npm that runs this script, as a JavaScript file
  const [command, ...before] = npm?.endsWith('npm-cli.js') ? [process.execPath, npm] : ['npm']
  // Output goes to stderr, so that stdout stays what the main job printed.
  const { status, error } = spawnSync(command ?? 'npm', [...before, ...args], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: command === 'npm' && process.platform === 'win32',
  })
  if (error) console.error(`npm could not be started: ${error.message}`)
  else if (status !== 0) console.error('The installation failed. It needs a network, and Node 20.19 or later.')
  return status ?? 1
}
