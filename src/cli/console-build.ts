// Builds the console's pages from their sources on the machine that serves them, once for each version of the sources. The
// build runs after the service listens, in a process of low priority; a failed build does not affect the service. The served
// folder is replaced by one rename.

import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { constants, setPriority } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { errorText } from '../runtime/log.ts'

const CONSOLE_FOLDER = fileURLToPath(new URL('../../console/', import.meta.url))

/** File in the built folder: the digest of its sources. */
const STAMP = '.made-from'
/** Source files outside of src. */
const SOURCES = ['index.html', 'vite.config.ts', 'package.json', 'tsconfig.json']
/** The pages use parts of the client that senders use, and show programs to paste. */
const FOLDERS = ['src', '../kits/typescript/src', '../kits/examples/snippets']

/** What the build may know of the environment: it runs other people's code, and settings of the service may be secrets. */
const PASSED_VARIABLES = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'LC_ALL', 'TZ']

let builds = 0

export interface ConsoleBuildOptions {
  readonly folder?: string
  /** Prints one line. */
  readonly say: (line: string) => void
  readonly signal?: AbortSignal
}

export type ConsoleBuildOutcome = 'up to date' | 'built' | 'failed'

/** Resolves when the build is over; never rejects. */
export async function buildConsole(options: ConsoleBuildOptions): Promise<ConsoleBuildOutcome> {
  const { folder = CONSOLE_FOLDER, say, signal } = options
  const dist = join(folder, 'dist')
  // On the same file system as `dist`, for the rename. The process id keeps two servers apart.
  const next = join(folder, `dist.${process.pid}.${++builds}.next`)
  try {
    // The npm package brings the pages, and no sources.
    if (!existsSync(join(folder, 'src')) && existsSync(join(dist, STAMP))) return 'up to date'
    const digest = await sourcesDigest(folder)
    if (await isBuiltFrom(dist, digest)) return 'up to date'
    const startedAt = performance.now()
    // An old console must not talk to a new service. Without a build, the page says that it is being built.
    await rm(dist, { recursive: true, force: true })
    say('Building the console (once for each version) …')
    await runVite(folder, next, signal)
    await writeFile(join(next, STAMP), digest)
    await makeReadable(next)
    await replace(dist, next, digest)
    say(`The console is built (${((performance.now() - startedAt) / 1000).toFixed(1)} s).`)
    return 'built'
  } catch (error) {
    await rm(next, { recursive: true, force: true }).catch(() => {})
    if (!signal?.aborted) {
      say(
        `The console could not be built: ${errorText(error)} Everything else works. To try again: npm run build:console`,
      )
    }
    return 'failed'
  }
}

/** Covers names and contents, not times, which change with a checkout or a copy. About 5 ms. */
async function sourcesDigest(folder: string): Promise<string> {
  const hash = createHash('sha256')
  for (const file of await sourceFiles(folder)) {
    const content = await readFile(join(folder, file))
    hash.update(`${file}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

async function sourceFiles(folder: string): Promise<string[]> {
  const inFolders = await Promise.all(FOLDERS.map((name) => filesIn(folder, name)))
  return [...SOURCES, ...inFolders.flat()].sort()
}

async function filesIn(folder: string, name: string): Promise<string[]> {
  const entries = await readdir(join(folder, name), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name)))
}

async function runVite(folder: string, outDir: string, signal: AbortSignal | undefined): Promise<void> {
  const vite = join(dirname(createRequire(join(folder, 'package.json')).resolve('vite/package.json')), 'bin/vite.js')
  const child = spawn(process.execPath, [vite, 'build', '--outDir', outDir, '--logLevel', 'error'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...passedEnvironment(), NODE_ENV: 'production', NO_COLOR: '1' },
  })
  lowerPriority(child)
  const kill = () => void child.kill()
  process.once('exit', kill)
  signal?.addEventListener('abort', kill)
  try {
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk))
    const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
    if (code !== 0) throw new Error(`vite ended with ${code}: ${output.trim().slice(0, 500)}`)
  } finally {
    process.off('exit', kill)
    signal?.removeEventListener('abort', kill)
  }
}

function passedEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    PASSED_VARIABLES.filter((name) => name in process.env).map((name) => [name, process.env[name]]),
  )
}

/** Intake has priority over the build. */
function lowerPriority(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW)
  } catch {
    // The child has ended, or the system forbids it: the build then runs at normal priority.
  }
}

/** Another user than the builder may run the server. */
async function makeReadable(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    await chmod(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644)
  }
}

async function isBuiltFrom(dist: string, digest: string): Promise<boolean> {
  return (await readFile(join(dist, STAMP), 'utf8').catch(() => '')) === digest
}

/** If another server was quicker, its build of the same sources stays. */
async function replace(dist: string, next: string, digest: string): Promise<void> {
  const old = `${next}.old`
  try {
    await mkdir(dist, { recursive: true })
    await rename(dist, old)
    await rename(next, dist)
  } catch (error) {
    await rm(next, { recursive: true, force: true })
    if (!(await isBuiltFrom(dist, digest))) throw error
  } finally {
    await rm(old, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const outcome = await buildConsole({ say: (line) => process.stdout.write(`${line}\n`) })
  process.exitCode = outcome === 'failed' ? 1 : 0
}
