// Makes of what the compiler has written file by file, in dist/, the few files that are installed, in bundle/. Loading some hundred small
// files takes three times as long.
import { readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const outdir = join(root, 'bundle')

/** The doors of the package, and what the command line starts or loads by the name of its file. */
const doors = {
  index: 'index',
  testing: 'testing/index',
  store: 'engine/store',
  'cli/main': 'cli/main',
  'cli/detached': 'cli/detached',
  'cli/demo-workflow': 'cli/demo-workflow',
  'cli/resolve-hook': 'cli/resolve-hook',
}

const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: Object.fromEntries(Object.entries(doors).map(([name, file]) => [name, join('dist', `${file}.js`)])),
  outdir,
  bundle: true,
  packages: 'external',
  // What several doors have in common is there once: who imports two of them gets the same classes.
  splitting: true,
  // The command line finds its own files beside its code, and package.json two folders above.
  chunkNames: 'cli/[name]-[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  sourcemap: true,
  sourcesContent: false,
  metafile: true,
  logLevel: 'warning',
})

// What an earlier one has left is not to be installed. It goes last: who runs the command line meanwhile still finds what it is made of.
const made = new Set(Object.keys(metafile.outputs).map((file) => join(root, file)))
for (const entry of readdirSync(outdir, { recursive: true, withFileTypes: true })) {
  const file = join(entry.parentPath, entry.name)
  if (entry.isFile() && !made.has(file)) rmSync(file)
}
