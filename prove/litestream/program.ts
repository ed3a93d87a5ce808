// Litestream as its users run it: one process that replicates the database of a server into a folder, and the command that
// restores it from there.
// Promises: the process does not outlive the proof; `sync` resolves only when Litestream has answered that everything was
// replicated which was committed before the call.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type ProofContext, Unable } from '../proof.ts'
import { waitFor } from '../wait.ts'

const run = promisify(execFile)
const LOG_CHARS = 4_000_000

export interface LitestreamOptions {
  readonly program: string
  /** The file that is replicated. */
  readonly database: string
  /** Holds the replica, the configuration and the control socket. */
  readonly folder: string
  /** Frames in the WAL from which on it checkpoints; its own default if left out. */
  readonly checkpointPages?: number
}

export async function versionOf(program: string | undefined): Promise<string> {
  const missing =
    'litestream needs --litestream with the program: go install github.com/benbjohnson/litestream/cmd/litestream@v0.5.18'
  if (program === undefined || !existsSync(program)) throw new Unable(missing)
  const { stdout } = await run(program, ['version']).catch(() => ({ stdout: '' }))
  if (stdout.trim() === '') throw new Unable(missing)
  return stdout.trim()
}

export class Litestream {
  readonly #options: LitestreamOptions
  readonly #config: string
  readonly #socket: string
  #child: ChildProcess | null = null
  #exited: Promise<unknown> = Promise.resolve()
  #log = ''

  constructor(context: Pick<ProofContext, 'onCleanup'>, options: LitestreamOptions) {
    this.#options = options
    const { database, folder, checkpointPages } = options
    mkdirSync(folder, { recursive: true })
    this.#config = join(folder, 'litestream.yml')
    this.#socket = join(folder, 'socket')
    const entry = {
      path: database,
      ...(checkpointPages === undefined ? {} : { 'min-checkpoint-page-count': checkpointPages }),
      replica: { path: join(folder, 'replica') },
    }
    // JSON is YAML.
    const logging = { level: 'debug', type: 'json' }
    const config = { logging, socket: { enabled: true, path: this.#socket }, dbs: [entry] }
    writeFileSync(this.#config, JSON.stringify(config))
    context.onCleanup(() => this.kill())
  }

  get isRunning(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Why it copied the whole database, once for each time. */
  get snapshots(): string[] {
    const lines = this.#log.split('\n').filter((line) => line.includes('"snap":"true"'))
    return lines.map((line) => /"reason":"([^"]+)"/.exec(line)?.[1] ?? 'first sync')
  }

  /** Starts it and waits for its first sync. */
  async start(): Promise<void> {
    const child = spawn(this.#options.program, ['replicate', '-config', this.#config], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    this.#exited = once(child, 'close')
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        this.#log = `${this.#log}${chunk}`.slice(-LOG_CHARS)
      })
    }
    let isSynced = false
    const trySync = async () => {
      while (!isSynced && this.isRunning) isSynced = await this.sync()
    }
    const syncing = trySync()
    await waitFor('Litestream to replicate', () => isSynced || !this.isRunning)
    await syncing
    if (!isSynced) throw new Error(`Litestream ended: ${this.#log.slice(-2000)}`)
  }

  /** True when Litestream has answered that its replica has everything; false if it cannot answer. */
  async sync(): Promise<boolean> {
    const answer = await this.#post('/sync', { path: this.#options.database, wait: true, timeout: 30 }).catch(
      () => null,
    )
    if (answer !== null) return Number(answer.replicated_txid) >= Number(answer.txid)
    await new Promise((resolve) => setTimeout(resolve, 20))
    return false
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(): Promise<void> {
    if (this.isRunning) this.#child!.kill('SIGKILL')
    await this.#exited
  }

  /** As an operator stops it. */
  async stop(): Promise<void> {
    if (this.isRunning) this.#child!.kill('SIGTERM')
    await this.#exited
  }

  /** What its user would run: the file is readable for its owner only. False if Litestream itself refuses the replica. */
  async restore(to: string): Promise<boolean> {
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
    const command = 'umask 077 && exec "$0" restore -config "$1" -integrity-check full -o "$2" "$3"'
    const args = ['-c', command, this.#options.program, this.#config, to, this.#options.database]
    return run('/bin/sh', args, { maxBuffer: 64 * 1024 * 1024 }).then(
      () => true,
      () => false,
    )
  }

  #post(path: string, body: object): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      const req = http.request({ socketPath: this.#socket, method: 'POST', path, agent: false })
      req.on('error', reject)
      req.on('response', (res) => {
        let text = ''
        res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        res.on('error', reject)
        res.on('close', () => {
          if (res.complete && res.statusCode === 200) resolve(JSON.parse(text) as Record<string, unknown>)
          else reject(new Error(`${path} answered ${res.statusCode}: ${text}`))
        })
      })
      req.end(JSON.stringify(body))
    })
  }
}
