// Main-thread side of a store thread (journal writer, indexer or reader): sends jobs, matches answers, and detects when the
// thread is gone.

import { Worker } from 'node:worker_threads'
import { callerGone, StoreFailure, type StoreFailureKind } from '../../contract/failure.ts'
import type { Calls, Executor, RunOptions } from '../operations.ts'
import type { FromThread, ThreadAnswer, ToThread } from './thread-jobs.ts'

interface Pending {
  resolve(result: unknown): void
  reject(failure: StoreFailure): void
}

const SOURCES = {
  writer: new URL('./writer-thread.ts', import.meta.url),
  indexer: new URL('./indexer-thread.ts', import.meta.url),
  reader: new URL('./reader-thread.ts', import.meta.url),
}

const CLOSED = new StoreFailure('unavailable', 'the store is closed')

export class StoreThread<O extends Calls> implements Executor<O> {
  readonly #worker: Worker
  /**
   * Waiting calls, by slot; free slots are reused. Not a Map: a Map with endless additions and deletions leaves old tables
   * behind, and each keeps its entries alive until a full collection (docs/internals/adr/0002).
   */
  readonly #pending: (Pending | undefined)[] = []
  readonly #fatalListeners: ((failure: Error) => void)[] = []
  readonly #ready = Promise.withResolvers<void>()
  #gone: StoreFailure | null = null
  #fatal: StoreFailure | null = null
  #closed: Promise<void> | null = null
  #onClosed: () => void = () => {}

  private constructor(name: string, worker: Worker) {
    this.#worker = worker
    worker.on('message', (message: FromThread) => this.#receive(message))
    worker.on('error', (error: Error) => this.#fail(new StoreFailure('fatal', `the ${name} stopped: ${error.message}`)))
    worker.on('exit', () => this.#fail(new StoreFailure('fatal', `the ${name} is gone`)))
  }

  /** Resolves when the thread has opened its connection. */
  static async start<O extends Calls>(name: keyof typeof SOURCES, path: string): Promise<StoreThread<O>> {
    const worker = new Worker(SOURCES[name], { workerData: { path } })
    const thread = new StoreThread<O>(name, worker)
    await thread.#ready.promise
    return thread
  }

  async run<N extends keyof O & string>(
    name: N,
    args: Parameters<O[N]>,
    { transfer = [], holder, gone }: RunOptions = {},
  ): Promise<Awaited<ReturnType<O[N]>>> {
    if (this.#gone) throw this.#gone
    if (this.#closed) throw CLOSED
    if (gone?.aborted) throw callerGone()
    const seq = this.#freePlace()
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#pending[seq] = { resolve, reject }
    })
    this.#worker.postMessage({ seq, name, args, holder } satisfies ToThread, transfer)
    return (gone ? await this.#cancelWith(gone, seq, answered) : await answered) as Awaited<ReturnType<O[N]>>
  }

  /** A listener added after a failure is called at once. */
  onFatal(listener: (failure: Error) => void): void {
    if (this.#fatal) listener(this.#fatal)
    else this.#fatalListeners.push(listener)
  }

  /** Jobs sent before are still run. */
  close(): Promise<void> {
    this.#closed ??= new Promise<void>((resolve) => {
      this.#onClosed = resolve
      if (this.#gone) resolve()
      else this.#worker.postMessage({ close: true } satisfies ToThread)
    })
    return this.#closed
  }

  /** The thread answers a cancelled job as well. A job that it has finished is not affected. */
  async #cancelWith(gone: AbortSignal, seq: number, answered: Promise<unknown>): Promise<unknown> {
    const cancel = () => this.#worker.postMessage({ cancel: seq } satisfies ToThread)
    gone.addEventListener('abort', cancel)
    try {
      return await answered
    } finally {
      gone.removeEventListener('abort', cancel)
    }
  }

  #freePlace(): number {
    const free = this.#pending.indexOf(undefined)
    return free === -1 ? this.#pending.length : free
  }

  #receive(message: FromThread): void {
    if (message === 'ready') {
      this.#ready.resolve()
    } else if (message === 'closed') {
      this.#gone = CLOSED
      this.#onClosed()
    } else {
      for (const answer of message) this.#settle(answer)
    }
  }

  #settle(answer: ThreadAnswer): void {
    const waiting = this.#pending[answer.seq]
    this.#pending[answer.seq] = undefined
    if ('result' in answer) {
      waiting?.resolve(answer.result)
      return
    }
    const failure = new StoreFailure(answer.failure.kind as StoreFailureKind, answer.failure.message)
    waiting?.reject(failure)
    if (failure.kind === 'fatal') this.#announce(failure)
  }

  /** A message to a dead thread is lost silently, so all pending calls are rejected, and further ones refused. */
  #fail(failure: StoreFailure): void {
    this.#onClosed()
    this.#ready.reject(failure)
    if (this.#gone) return
    this.#gone = failure
    for (const waiting of this.#pending.splice(0)) waiting?.reject(failure)
    this.#announce(failure)
  }

  #announce(failure: StoreFailure): void {
    this.#fatal ??= failure
    for (const listener of this.#fatalListeners.splice(0)) listener(failure)
  }
}
