// The server's side of the writer thread: sends jobs, matches answers, and notices when the thread is gone.

import { Worker } from 'node:worker_threads'
import { StoreFailure, type StoreFailureKind } from '../contract/failure.ts'
import type { Executor, OperationName, Operations } from './operations.ts'
import type { FromWriter, ToWriter } from './writer-thread.ts'

interface Pending {
  resolve(result: unknown): void
  reject(failure: StoreFailure): void
}

export class WriterThread implements Executor {
  readonly #worker: Worker
  readonly #pending = new Map<number, Pending>()
  readonly #fatalListeners: ((failure: Error) => void)[] = []
  readonly #ready = Promise.withResolvers<void>()
  #seq = 0
  #gone: StoreFailure | null = null
  #closed: Promise<void> | null = null
  #onClosed: () => void = () => {}

  private constructor(worker: Worker) {
    this.#worker = worker
    worker.on('message', (message: FromWriter) => this.#receive(message))
    worker.on('error', (error: Error) => this.#fail(new StoreFailure('fatal', `the writer stopped: ${error.message}`)))
    worker.on('exit', () => this.#fail(new StoreFailure('fatal', 'the writer is gone')))
  }

  /** Resolves when the thread holds its connection. */
  static async start(path: string): Promise<WriterThread> {
    const writer = new WriterThread(
      new Worker(new URL('./writer-thread.ts', import.meta.url), { workerData: { path } }),
    )
    await writer.#ready.promise
    return writer
  }

  run<N extends OperationName>(
    name: N,
    args: Parameters<Operations[N]>,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<ReturnType<Operations[N]>> {
    if (this.#gone) return Promise.reject(this.#gone)
    const seq = ++this.#seq
    return new Promise((resolve, reject) => {
      this.#pending.set(seq, { resolve: resolve as Pending['resolve'], reject })
      this.#worker.postMessage({ seq, name, args } satisfies ToWriter, transfer)
    })
  }

  onFatal(listener: (failure: Error) => void): void {
    this.#fatalListeners.push(listener)
  }

  /** What was sent before is still carried out. */
  close(): Promise<void> {
    this.#closed ??= new Promise<void>((resolve) => {
      this.#onClosed = resolve
      if (this.#gone) resolve()
      else this.#worker.postMessage({ close: true } satisfies ToWriter)
    })
    return this.#closed
  }

  #receive(message: FromWriter): void {
    if ('closed' in message) {
      this.#gone = new StoreFailure('unavailable', 'the store is closed')
      this.#onClosed()
    }
    if ('ready' in message) this.#ready.resolve()
    if (!('seq' in message)) return
    const waiting = this.#pending.get(message.seq)
    this.#pending.delete(message.seq)
    if ('result' in message) {
      waiting?.resolve(message.result)
      return
    }
    const failure = new StoreFailure(message.failure.kind as StoreFailureKind, message.failure.message)
    waiting?.reject(failure)
    if (failure.kind === 'fatal') this.#announce(failure)
  }

  /** A message to a dead thread is lost in silence, so whoever waits is told, and nobody else may wait. */
  #fail(failure: StoreFailure): void {
    this.#onClosed()
    this.#ready.reject(failure)
    if (this.#gone) return
    this.#gone = failure
    for (const waiting of this.#pending.values()) waiting.reject(failure)
    this.#pending.clear()
    this.#announce(failure)
  }

  #announce(failure: StoreFailure): void {
    for (const listener of this.#fatalListeners.splice(0)) listener(failure)
  }
}
