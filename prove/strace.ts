// strace on a running process: sees system calls of all its threads, in the order in which they happened, and can let the
// n-th of a kind fail or kill the process there.
// Promises: nothing is counted before `attach` has resolved; what was injected is read from strace's own output. A call is
// counted by thread: of SQLite's calls all are made by the one thread that writes.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { requirePackages } from './debian.ts'
import { Unable } from './proof.ts'

const ATTACH_LIMIT_MS = 30_000

export const SYNCS = ['fsync', 'fdatasync'] as const
export const WRITES = ['pwrite64', 'pwritev'] as const
/** How an answer can leave: libuv writes with the first two; the others are there so that none is overlooked. */
export const SENDS = ['write', 'writev', 'sendto', 'sendmsg'] as const

export function hasStrace(): boolean {
  return spawnSync('strace', ['-V'], { stdio: 'ignore' }).status === 0
}

export function requireStrace(proof: string, progress: (line: string) => void): void {
  requirePackages({ proof, packages: ['strace'], isThere: hasStrace }, progress)
}

export interface StraceOptions {
  readonly pid: number
  /**
   * Watches the threads of this name alone. Every call of a thread that is watched, of whatever kind, stops it twice: the
   * thread that talks to the network would be slowed down for nothing.
   */
  readonly thread?: string
  /** Sees, counts and strikes only what is about these files. */
  readonly files?: readonly string[]
  readonly output: string
  readonly calls: readonly string[]
  /** What happens to the n-th of the calls: `error=EIO`, `signal=KILL`, … */
  readonly inject?: { readonly calls: readonly string[]; readonly what: string; readonly nth: number }
  /** So many bytes of each string, as hexadecimal digits; else the first few, for people. */
  readonly wholeBytes?: number
}

export class Strace {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  readonly #output: string

  private constructor(child: ChildProcess, output: string) {
    this.#child = child
    this.#output = output
    this.#ended = once(child, 'close')
  }

  /** Resolves when every thread of the process is watched. */
  static async attach({ pid, thread, files = [], output, calls, inject, wholeBytes }: StraceOptions): Promise<Strace> {
    const strings = wholeBytes === undefined ? ['-s', '16'] : ['-xx', '-s', String(wholeBytes)]
    const injection = inject ? ['-e', `inject=${inject.calls.join(',')}:${inject.what}:when=${inject.nth}`] : []
    const whom = thread === undefined ? ['-f', '-p', String(pid)] : threadsOf(pid, thread).flatMap((id) => ['-p', id])
    const about = files.flatMap((file) => ['-P', file])
    const args = ['-y', ...strings, '-o', output, '-e', `trace=${calls.join(',')}`, ...about, ...injection, ...whom]
    const toBeAttached = whom.filter((one) => one === '-p').length
    const child = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] })
    const strace = new Strace(child, output)
    const attached = Promise.withResolvers<void>()
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      said = `${said}${chunk}`.slice(-2000)
      if (said.split(' attached').length > toBeAttached) attached.resolve()
    })
    const refused = () => attached.reject(new Unable(`strace cannot watch a process here: ${said.trim()}`))
    void strace.#ended.then(refused, refused)
    const late = setTimeout(refused, ATTACH_LIMIT_MS)
    try {
      await attached.promise
    } catch (error) {
      child.kill('SIGTERM')
      throw error
    } finally {
      clearTimeout(late)
    }
    return strace
  }

  /** What it saw so far, a line for each call. */
  read(): string {
    return readFileSync(this.#output, 'utf8')
  }

  /** Lets go of the process, which goes on; resolves when the output is complete. */
  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill('SIGTERM')
    await this.#ended
  }

  /** The process has ended, and with it strace. */
  async ended(): Promise<void> {
    await this.#ended
  }
}

export interface Injection {
  /** The file that the call was about. */
  readonly file: string
  /** As strace wrote it. */
  readonly line: string
}

/** The calls that failed because of us. */
export function injectedErrors(output: string): Injection[] {
  return output
    .split('\n')
    .filter((line) => line.endsWith('(INJECTED)'))
    .map((line) => ({ file: fileOf(line), line }))
}

/**
 * The call that the process was killed at: the last one of its kind, without a result, while the process was killed.
 * Null if the process ended otherwise.
 */
export function injectedKill(output: string, calls: readonly string[], nth: number): Injection | null {
  if (!output.includes('+++ killed by SIGKILL +++')) return null
  const isCall = new RegExp(`^(\\d* *)(?:${calls.join('|')})\\(`)
  const counts = new Map<string, number>()
  for (const line of output.split('\n')) {
    const thread = isCall.exec(line)?.[1]
    if (thread === undefined) continue
    const count = (counts.get(thread) ?? 0) + 1
    counts.set(thread, count)
    if (count === nth && !/= \d+$/.test(line)) return { file: fileOf(line), line }
  }
  return null
}

function threadsOf(pid: number, name: string): string[] {
  const tasks = `/proc/${pid}/task`
  const found = readdirSync(tasks).filter((id) => readFileSync(join(tasks, id, 'comm'), 'utf8').trim() === name)
  if (found.length === 0) throw new Unable(`there is no thread ${name} to be watched`)
  return found
}

/** From `fsync(29</path/to/file>) = …`. */
function fileOf(line: string): string {
  return /\(\d+<([^>]*)>/.exec(line)?.[1] ?? ''
}
