// INTRAY_WORKERS: one process for each core, all on one port. This is the process above them: it prepares the database
// once, starts the workers, replaces one that dies, and passes a stop on to all of them.
//
//   the first worker ends before it listens → its reason stands on stderr; exit code 1
//   a worker ends later                     → replaced, at once or, if it lived shortly, after a pause
//   SIGTERM, SIGINT                         → each worker stops in order; a second signal kills them
//   this process is gone                    → node ends each worker at once, as a kill would

import cluster, { type Worker } from 'node:cluster'
import { availableParallelism } from 'node:os'
import type { Config } from '../config.ts'
import { systemClock } from '../runtime/clock.ts'
import { errorText, type Log } from '../runtime/log.ts'
import type { Store } from '../store/contract/store.ts'
import { openStore } from '../store/open.ts'
import { CommandError } from './command.ts'
import { buildConsole } from './console-build.ts'
import { withStore } from './open.ts'
import { welcome } from './starter.ts'
import { closeUntakenConnections } from './untaken-connections.ts'

const SHORT_LIFE_MS = 10_000
const PAUSE_MS = 1000
/** A worker cuts off by itself what has not finished in time; one that does not even do that is killed after this. */
const STOP_GRACE_MS = 5000

/** From a worker: where it listens. To a worker: stop in order. */
export interface WorkerMessage {
  readonly listening?: string
}

export const STOP_MESSAGE = 'stop'

const SLOT = 'WORKER_SLOT'

/** In a worker: which of the places it has, from 0. One that is replaced leaves its place to its successor. */
export function workerSlot(): number {
  return Number(process.env[SLOT] ?? 0)
}

/** The exit code: 0 after a graceful stop of every worker. */
export async function runWorkers(config: Config, log: Log): Promise<number> {
  // As a server would: a database that no server may open is refused here, before anything is written.
  const store = await openStore(config.databaseUrl, { role: 'server' })
  await requireServer(store).finally(() => store.close())
  const count = config.workers === 'auto' ? availableParallelism() : config.workers
  const stopLimitMs = config.readyDelay + config.stopTimeout + STOP_GRACE_MS
  const ended = new Fleet(count, log, stopLimitMs, async (address) => {
    // Not before somebody listens: a start that is refused must not use up the token that nobody then saw.
    const text = await withStore((store) => welcome(store, config, address, systemClock.now()), config)
    process.stdout.write(`Intray is listening on ${address} with ${count} workers\n${text}`)
    if (config.console === 'on') void buildConsole({ say: (line) => process.stdout.write(`${line}\n`) })
  }).run()
  const code = await ended
  await log.flush()
  return code
}

async function requireServer(store: Store): Promise<void> {
  if (store.traits.concurrentWriters) return
  throw new CommandError(
    'INTRAY_WORKERS above 1 needs a database server, because a database file has a single writer. ' +
      "Set INTRAY_WORKERS=1, or move to a database server: './intray copy --help'.",
  )
}

interface WorkerEnd {
  readonly code: number
  readonly signal: string
  readonly livedMs: number
}

class Fleet {
  readonly #count: number
  readonly #log: Log
  readonly #stopLimitMs: number
  readonly #onListening: (address: string) => Promise<void>
  readonly #ended = Promise.withResolvers<number>()
  /** Those that said where they listen. */
  readonly #ready = new WeakSet<Worker>()
  #listening = false
  #stopping = false
  #code = 0

  constructor(count: number, log: Log, stopLimitMs: number, onListening: (address: string) => Promise<void>) {
    this.#count = count
    this.#log = log
    this.#stopLimitMs = stopLimitMs
    this.#onListening = onListening
  }

  run(): Promise<number> {
    process.on('SIGTERM', () => this.#stop())
    process.on('SIGINT', () => this.#stop())
    this.#fork(0)
    return this.#ended.promise
  }

  #fork(slot: number): void {
    const worker = cluster.fork({ [SLOT]: String(slot) })
    closeUntakenConnections(worker)
    const startedAt = performance.now()
    worker.on('message', ({ listening }: WorkerMessage) => {
      if (listening === undefined) return
      this.#ready.add(worker)
      if (this.#stopping) worker.send(STOP_MESSAGE)
      else if (!this.#listening) this.#begin(listening)
    })
    worker.on('exit', (code, signal) => {
      this.#onExit(worker, slot, { code, signal, livedMs: performance.now() - startedAt })
    })
  }

  /** The first one listens: the others follow, and whoever started us is told. */
  #begin(address: string): void {
    this.#listening = true
    for (let slot = 1; slot < this.#count; slot++) this.#fork(slot)
    this.#onListening(address).catch((error: unknown) => {
      this.#log.logger.fatal('could not start', { error: errorText(error) })
      this.#code = 1
      if (!this.#stopping) this.#stop()
    })
  }

  #onExit(worker: Worker, slot: number, { code, signal, livedMs }: WorkerEnd): void {
    if (!this.#stopping && this.#listening) {
      this.#log.logger.error('a worker ended; starting another', { pid: worker.process.pid, code, signal })
      setTimeout(() => (this.#stopping ? this.#endIfAlone() : this.#fork(slot)), livedMs < SHORT_LIFE_MS ? PAUSE_MS : 0)
      return
    }
    // One that was still starting may have been ended by a signal to all of us: it had taken nothing in.
    if (code !== 0 && !(this.#stopping && !this.#ready.has(worker))) this.#code = 1
    if (!this.#stopping) this.#stop()
    this.#endIfAlone()
  }

  #endIfAlone(): void {
    if (workers().length === 0) this.#ended.resolve(this.#code)
  }

  /** One that is still starting would not hear it: it is told when it says that it listens. */
  #stop(): void {
    const again = this.#stopping
    this.#stopping = true
    if (!again) setTimeout(() => this.#killAll(), this.#stopLimitMs).unref()
    for (const worker of workers()) {
      if (!again && this.#ready.has(worker) && worker.isConnected()) worker.send(STOP_MESSAGE)
    }
    if (again) this.#killAll()
    this.#endIfAlone()
  }

  #killAll(): void {
    for (const worker of workers()) worker.process.kill('SIGKILL')
  }
}

/** One that has ended may still be listed: its end is told before its channel's. */
function workers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker): worker is Worker => worker?.isDead() === false)
}
