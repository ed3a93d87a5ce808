// Intray as a user starts it: `./intray serve` on a fresh database with default settings, and its CLI.
// Promises: no INTRAY_* setting of the caller leaks in; log lines go to a file, so that the cost of logging is
// included.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { drainIndex } from '../intake/fill.ts'
import type { Scope } from '../scope.ts'
import { type Contestant, pidsOf, startOf } from './contestant.ts'
import type { Databases } from './databases.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CLI_LIMIT_MS = 30_000
const LOG_TAIL_CHARS = 2000

export interface Intray extends Contestant {
  readonly name: 'intray' | 'two'
  readonly databaseUrl: string
  /** Runs `./intray <args>` against this server's database and parses the one JSON object it prints. */
  cli(args: readonly string[], limitMs?: number): Promise<Record<string, unknown>>
}

export interface IntrayOptions {
  readonly profileFolder?: string | null
  readonly workers?: number
  /** The checkout whose launcher and commands are run; this one by default. */
  readonly root?: string
  /** Further INTRAY_* settings. */
  readonly settings?: Readonly<Record<string, string>>
}

function environment(databaseUrl: string, options: IntrayOptions): NodeJS.ProcessEnv {
  const { profileFolder = null, workers = 1, settings = {} } = options
  const own = Object.entries(process.env).filter(([key]) => !key.startsWith('INTRAY_') && !key.startsWith('npm_'))
  return {
    ...Object.fromEntries(own),
    INTRAY_PORT: '0',
    INTRAY_DATABASE_URL: databaseUrl,
    INTRAY_WORKERS: String(workers),
    ...settings,
    ...(profileFolder === null ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profileFolder}` }),
  }
}

/** Resolves with the port of the first loopback address on stdout; keeps reading, so that the pipe never fills. */
function portOf(child: ChildProcess, seen: { text: string }): Promise<number> {
  return new Promise((resolve) => {
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      if (seen.text.length < 64 * 1024) seen.text += chunk
      const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(seen.text)?.[1]
      if (port !== undefined) resolve(Number(port))
    })
  })
}

async function runCli(
  root: string,
  env: NodeJS.ProcessEnv,
  args: readonly string[],
  timeout: number,
): Promise<Record<string, unknown>> {
  const { NODE_OPTIONS: _notTheServersProfile, ...cliEnv } = env
  const limits = { cwd: root, env: cliEnv, timeout }
  const { stdout } = await promisify(execFile)(join(root, 'intray'), args, limits)
  return JSON.parse(stdout) as Record<string, unknown>
}

export async function startIntray(scope: Scope, databases: Databases, options: IntrayOptions = {}): Promise<Intray> {
  const { root = ROOT } = options
  const folder = mkdtempSync(join(scope.folder, 'intray-'))
  const databaseUrl = await databases.newUrl()
  const env = environment(databaseUrl, options)
  const logPath = join(folder, 'stderr.log')
  const log = openSync(logPath, 'a')
  const child = scope.own(spawn(join(root, 'intray'), ['serve'], { cwd: root, env, stdio: ['ignore', 'pipe', log] }))
  closeSync(log)
  const seen = { text: '' }
  const port = await startOf('intray', child, portOf(child, seen), () => {
    const tail = (seen.text + readFileSync(logPath, 'utf8')).slice(-LOG_TAIL_CHARS).trim()
    return options.root === undefined ? ` Leave it out with --skip intray.\n${tail}` : `\n${tail}`
  })
  const cli = (args: readonly string[], limitMs = CLI_LIMIT_MS): Promise<Record<string, unknown>> =>
    runCli(root, env, args, limitMs)
  const { token } = await cli(['token', 'create', '--account', '7', '--company', '42', '--scope', 'cf', '--json'])
  if (typeof token !== 'string') throw new Error('`./intray token create --json` printed no "token".')
  const name = (options.workers ?? 1) === 1 ? 'intray' : 'two'
  const finished = async (): Promise<void> => {
    await drainIndex({ cli })
  }
  return { name, databaseUrl, pids: pidsOf(child, databases), port, token, child, cli, finished }
}
