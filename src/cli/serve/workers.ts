// The primary process of INTRAY_WORKERS (one process for each core, all on one port): prepares the database once, starts the
// workers, replaces a worker that dies, and forwards a stop to all of them.
//
//   the first worker ends before it listens → it reports the reason on stderr; exit code 1
//   a worker ends later                     → replaced at once, or after a pause if it lived less than 10 s
//   SIGTERM, SIGINT                         → each worker stops gracefully; a second signal kills them
//   the primary process dies                → node kills each worker

import cluster, { type Worker } from 'node:cluster'
import { availableParallelism } from 'node:os'
import { AUTO_READY_DELAY_MS, type Config } from '../../config.ts'
import { errorText, type Log } from '../../runtime/log.ts'
import type { Store } from '../../store/contract/store.ts'
import { openStore } from '../../store/open.ts'
import { announce } from './announce.ts'
import { CommandError } from '../command.ts'
import { workerEnvironment } from './listen-socket.ts'
import { withStore } from '../open.ts'
import { closeUnacceptedConnections } from './unaccepted-connections.ts'
import { databaseLine } from '../used-database.ts'

const SHORT_LIFE_MS = 10_000
const PAUSE_MS = 1000
/** A worker ends its open requests after the stop timeout; if it has not ended this much later, it is killed. */
const STOP_GRACE_MS = 5000

/** From a worker: its address. To a worker: STOP_MESSAGE. */
export interface WorkerMessage {
  readonly listening?: string
}

export const STOP_MESSAGE = 'stop'

const SLOT = 'WORKER_SLOT'

/** In a worker: its number, from 0. A replacement gets the number of its predecessor. */
export function workerSlot(): number {
  return Number(process.env[SLOT] ?? 0)
}

/** The exit code: 0 after a graceful stop of every worker. */
export async function runWorkers(config: Config, log: Log, listenFd: number | null): Promise<number> {
  // Refuses a database that no server may open before anything is written.
  const store = await openStore(config.databaseUrl, { role: 'server' })
  await requireServer(store).finally(() => store.close())
  const count = config.workers === 'auto' ? availableParallelism() : config.workers
  const readyDelay = config.readyDelay === 'auto' ? AUTO_READY_DELAY_MS : config.readyDelay
  const stopLimitMs = readyDelay + config.stopTimeout + STOP_GRACE_MS
  const ended = new Fleet({ count, log, stopLimitMs, listenFd }, async (address) => {
    const start = { address, config, logger: log.logger, processes: ` with ${count} workers` }
    databaseLine(config.databaseUrl)
    await withStore((store) => announce(store, start), config)
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

interface FleetOptions {
  readonly count: number
  readonly log: Log
  readonly stopLimitMs: number
  readonly listenFd: number | null
}

class Fleet {
  readonly #count: number
  readonly #log: Log
  readonly #stopLimitMs: number
  readonly #listenFd: number | null
  readonly #onListening: (address: string) => Promise<void>
  readonly #ended = Promise.withResolvers<number>()
  /** Workers that have sent their address. */
  readonly #ready = new WeakSet<Worker>()
  #listening = false
  #stopping = false
  #code = 0

  constructor(options: FleetOptions, onListening: (address: string) => Promise<void>) {
    this.#count = options.count
    this.#log = options.log
    this.#stopLimitMs = options.stopLimitMs
    this.#listenFd = options.listenFd
    this.#onListening = onListening
  }

  run(): Promise<number> {
    process.on('SIGTERM', () => this.#stop())
    process.on('SIGINT', () => this.#stop())
    this.#fork(0)
    return this.#ended.promise
  }

  #fork(slot: number): void {
    const worker = cluster.fork({ [SLOT]: String(slot), ...workerEnvironment(this.#listenFd) })
    closeUnacceptedConnections(worker)
    const startedAt = performance.now()
    worker.on('message', ({ listening }: WorkerMessage) => {
      if (listening === undefined) return
      this.#ready.add(worker)
      if (this.#stopping) worker.send(STOP_MESSAGE)
      else if (!this.#listening) this.#begin(listening)
    })
    // What is sent to a worker that has just died fails, and would end this process too. Its exit is what counts.
    worker.on('error', (error: Error) => {
      this.#log.logger.warn('a worker could not be reached', { pid: worker.process.pid, error: errorText(error) })
    })
    worker.on('exit', (code, signal) => {
      this.#onExit(worker, slot, { code, signal, livedMs: performance.now() - startedAt })
    })
  }

  /** Once the first worker listens: starts the others and prints the address. */
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
    // With its last worker this process loses a socket that was passed to it; who holds the socket starts the service again.
    const canReplace = this.#listenFd === null || workers().some((one) => this.#ready.has(one))
    if (!this.#stopping && this.#listening && canReplace) {
      this.#log.logger.error('a worker ended; starting another', { pid: worker.process.pid, code, signal })
      setTimeout(() => (this.#stopping ? this.#endIfAlone() : this.#fork(slot)), livedMs < SHORT_LIFE_MS ? PAUSE_MS : 0)
      return
    }
    if (!this.#stopping && this.#listening)
      this.#log.logger.fatal('all workers ended, so the socket is lost; stopping', { code, signal })
    // A signal to the process group may end a worker that is still starting: that is no failure, it had no requests.
    if (code !== 0 && !(this.#stopping && !this.#ready.has(worker))) this.#code = 1
    if (!this.#stopping) this.#stop()
    this.#endIfAlone()
  }

  #endIfAlone(): void {
    if (workers().length === 0) this.#ended.resolve(this.#code)
  }

  /** A worker that is still starting gets the message once it listens. */
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

/** Without workers that have ended: cluster.workers lists them until their channel closes. */
function workers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker): worker is Worker => worker?.isDead() === false)
}
