// Intray as its users run it: `./intray serve` in a process of its own, with whatever stands in front of it (strace,
// faketime, …), and the commands beside it.
// Promises: no INTRAY_* setting of the caller leaks in; the process does not outlive the proof.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { ProofContext } from './proof.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
export const LAUNCHER = fileURLToPath(new URL('../intray', import.meta.url))

export const TENANT = { account: 7, company: 42 } as const

const START_LIMIT_MS = 60_000
const COMMAND_LIMIT_MS = 120_000
const LOG_CHARS = 200_000
const WITHOUT_METRICS = { INTRAY_LOG_LEVEL: 'warn' }
const WITH_METRICS = { INTRAY_LOG_LEVEL: 'info', INTRAY_METRICS: '127.0.0.1:0' }

export interface ServiceOptions {
  readonly databaseUrl: string
  readonly env?: Readonly<Record<string, string>>
  /** What the launcher is run under, such as ['strace', '-D', …]. */
  readonly prefix?: readonly string[]
  /** Instead of `./intray serve`: a control. It must say "listening on http://…" on stdout. */
  readonly command?: readonly string[]
  /** Of another checkout; this one's if left out. */
  readonly launcher?: string
  /** It tells its metrics, at an address that only its log names. */
  readonly hasMetrics?: boolean
}

export interface Finished {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export class Service {
  readonly options: ServiceOptions
  #child: ChildProcess | null = null
  #exited: Promise<number | null> = Promise.resolve(null)
  #port = 0
  #log = ''
  #metrics = Promise.withResolvers<string>()

  readonly #stateFolder: string
  #hasDatabase = false

  constructor(context: Pick<ProofContext, 'onCleanup' | 'folder'>, options: ServiceOptions) {
    this.options = options
    this.#stateFolder = join(context.folder, 'state')
    context.onCleanup(() => this.kill())
  }

  /** Of the last start. */
  get port(): number {
    return this.#port
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error('the service was not started')
    return this.#child.pid
  }

  get isRunning(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** How it ended; null while it runs and if it was ended by a signal. */
  get exited(): Promise<number | null> {
    return this.#exited
  }

  /** The last of what it wrote, of all starts. */
  get log(): string {
    return this.#log
  }

  /** Starts it, again if it has ended, and waits until it says where it listens. */
  async start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    if (this.isRunning) throw new Error('the service is running already')
    const { prefix = [], launcher = LAUNCHER, command = [launcher, 'serve'], hasMetrics = false } = this.options
    const [program, ...args] = [...prefix, ...command]
    const child = spawn(program!, args, {
      cwd: ROOT,
      env: this.#environment({ INTRAY_PORT: '0', ...(hasMetrics ? WITH_METRICS : WITHOUT_METRICS), ...env }),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    this.#exited = once(child, 'close').then(([code]) => code as number | null)
    const address = Promise.withResolvers<number>()
    const metrics = Promise.withResolvers<string>()
    metrics.promise.catch(() => {})
    this.#metrics = metrics
    let said = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      said = `${said}${chunk}`.slice(-4000)
      const port = /listening on http:\/\/[^\s:]+:(\d+)/.exec(said)?.[1]
      if (port !== undefined) address.resolve(Number(port))
    })
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      this.#log = `${this.#log}${chunk}`.slice(-LOG_CHARS)
      const url = hasMetrics ? /"metrics":"(http:[^"]+)"/.exec(chunk)?.[1] : undefined
      if (url !== undefined) metrics.resolve(url)
    })
    child.on('error', (error) => address.reject(error))
    void this.#exited.then((code) => {
      address.reject(new Error(`it ended with ${code}: ${said}${this.#log.slice(-2000)}`))
      metrics.reject(new Error(`it ended with ${code} before it told its metrics`))
    })
    const late = setTimeout(() => address.reject(new Error(`it does not listen: ${said}`)), START_LIMIT_MS)
    try {
      this.#port = await address.promise
    } finally {
      clearTimeout(late)
    }
  }

  /** The metrics of the process that runs, in Prometheus' format. */
  async metrics(): Promise<string> {
    const answer = await fetch(await this.#metrics.promise)
    if (!answer.ok) throw new Error(`/metrics answered ${answer.status}`)
    return answer.text()
  }

  /** SIGKILL, also to one that is paused; resolves when it is gone. */
  async kill(): Promise<void> {
    if (this.isRunning) this.#child!.kill('SIGKILL')
    await this.#exited
  }

  /** As an operator stops it. Returns its exit code. */
  async stop(): Promise<number | null> {
    if (this.isRunning) this.#child!.kill('SIGTERM')
    return this.#exited
  }

  pause(): void {
    this.#child!.kill('SIGSTOP')
  }

  resume(): void {
    this.#child!.kill('SIGCONT')
  }

  /** Runs `./intray <args>` on the database of this service to its end. */
  async command(args: readonly string[]): Promise<Finished> {
    try {
      const { stdout, stderr } = await promisify(execFile)(this.options.launcher ?? LAUNCHER, args, {
        cwd: ROOT,
        env: this.#environment({}),
        timeout: COMMAND_LIMIT_MS,
        maxBuffer: 256 * 1024 * 1024,
      })
      return { code: 0, stdout, stderr }
    } catch (error) {
      const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string }
      if (typeof code !== 'number') throw error
      return { code, stdout: stdout ?? '', stderr: stderr ?? '' }
    }
  }

  /** A new token of the proof's tenant. The first makes the database, unless there is one. */
  async mint(scope: string, tenant: { account: number; company: number } = TENANT): Promise<string> {
    // Fails if there is one, and in commits from before this command: there, the first token makes it.
    if (!this.#hasDatabase) await this.command(['init'])
    this.#hasDatabase = true
    const whose = ['--account', String(tenant.account), '--company', String(tenant.company)]
    const { code, stdout, stderr } = await this.command(['token', 'create', ...whose, '--scope', scope, '--json'])
    const token = code === 0 ? (JSON.parse(stdout) as { token?: unknown }).token : undefined
    if (typeof token !== 'string') throw new Error(`no token was made: ${stderr}`)
    return token
  }

  #environment(more: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
    const inherited = Object.entries(process.env).filter(
      ([name]) => !name.startsWith('INTRAY_') && !name.startsWith('npm_') && name !== 'NODE_TEST_CONTEXT',
    )
    return {
      ...Object.fromEntries(inherited),
      INTRAY_DATABASE_URL: this.options.databaseUrl,
      // Where servers leave a note for commands: not the one of whoever runs the proof.
      XDG_STATE_HOME: this.#stateFolder,
      ...this.options.env,
      ...more,
    }
  }
}
