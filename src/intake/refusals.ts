// Records refused requests for integrators: after the answer, best effort, through a bounded buffer. Refusals that do not fit
// are dropped and counted, so that a flood of them does not slow intake.

import type { Refusal } from '../model/refusal.ts'
import type { Clock } from '../runtime/clock.ts'
import { PeriodicTask, type Service } from '../runtime/service.ts'
import type { RefusalBounds, RefusalStore } from '../store/contract/refusals.ts'

export interface RefusalRecorderOptions {
  readonly store: RefusalStore
  readonly bounds: RefusalBounds
  readonly bufferMax: number
  readonly clock: Clock
  readonly onTrouble: (doing: string, error: unknown) => void
}

const SWEEP_EVERY_MS = 3_600_000

export class RefusalRecorder implements Service {
  readonly #options: RefusalRecorderOptions
  readonly #sweeper: PeriodicTask
  #buffer: Refusal[] = []
  #writing: Promise<void> | null = null
  #dropped = 0

  constructor(options: RefusalRecorderOptions) {
    this.#options = options
    this.#sweeper = new PeriodicTask(SWEEP_EVERY_MS, () => this.#add([]))
  }

  start(): void {
    this.#sweeper.start()
  }

  /** Refusals that were not recorded. */
  get dropped(): number {
    return this.#dropped
  }

  record(refusal: Refusal): void {
    if (this.#options.bounds.maxCount === 0) return
    if (this.#buffer.length >= this.#options.bufferMax) {
      if (this.#dropped === 0) this.#options.onTrouble('record refusals', new Error('the buffer is full'))
      this.#dropped += 1
      return
    }
    this.#buffer.push(refusal)
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null
    })
  }

  async stop(): Promise<void> {
    await this.#sweeper.stop()
    await this.#writing
  }

  async #write(): Promise<void> {
    while (this.#buffer.length > 0) {
      const batch = this.#buffer
      this.#buffer = []
      await this.#add(batch)
    }
  }

  /** Adding nothing still deletes old refusals. */
  async #add(batch: readonly Refusal[]): Promise<void> {
    const { store, bounds, clock, onTrouble } = this.#options
    try {
      await store.add(batch, bounds, clock.now())
    } catch (error) {
      this.#dropped += batch.length
      onTrouble('record refusals', error)
    }
  }
}
