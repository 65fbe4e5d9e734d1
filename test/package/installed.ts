import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from '../house/workshop.js'

/** The files that npm puts into the package. */
export function packed(): string[] {
  const told = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root, encoding: 'utf8', stdio: 'pipe' })
  const [{ files }] = JSON.parse(told) as [{ files: { path: string }[] }]
  return files.map(({ path }) => path)
}

/** A project of its own, in which the package and what it depends on are installed, and whatever else is named; nothing more. */
export class Project implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'tutti-package-'))

  constructor(files: readonly string[], alsoInstalled: readonly string[] = []) {
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: Record<string, string> }
    for (const file of files) {
      const to = join(this.folder, 'node_modules/tutti', file)
      mkdirSync(dirname(to), { recursive: true })
      cpSync(join(root, file), to)
    }
    for (const name of [...Object.keys(dependencies), ...alsoInstalled]) {
      const to = join(this.folder, 'node_modules', name)
      mkdirSync(dirname(to), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), to, 'junction')
    }
    this.write('package.json', JSON.stringify({ name: 'project', private: true, type: 'module' }))
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.folder, file), text)
  }

  /** What the compiler has against these files: as strict as it can be, declarations of packages included, and with no types of Node. */
  tsc(files: readonly string[], options: object = {}, compiler = join(root, 'node_modules/typescript')): Promise<string> {
    const compilerOptions = { strict: true, target: 'es2022', module: 'nodenext', types: [], outDir: 'out', ...options }
    this.write('tsconfig.json', JSON.stringify({ compilerOptions, files }))
    const args = [join(compiler, 'bin/tsc'), '-p', '.', '--pretty', 'false']
    return new Promise((resolve) => execFile(process.execPath, args, { cwd: this.folder }, (_, stdout, stderr) => resolve(stdout + stderr)))
  }

  /** What a program says that is executed there. */
  node(file: string): Promise<string> {
    return new Promise((resolve) =>
      execFile(process.execPath, [file], { cwd: this.folder }, (_, stdout, stderr) => resolve(stdout + stderr)),
    )
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
