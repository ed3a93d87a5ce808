// Keeps refused requests for whoever wires up an integration: after the answer, best effort, through a bounded buffer.
// What does not fit is counted and let go: a flood of refusals must not cost a message.

import type { Refusal } from '../model/refusal.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Service } from '../runtime/service.ts'
import type { RefusalBounds, RefusalStore } from '../store/contract/refusals.ts'

export interface RefusalRecorderOptions {
  readonly store: RefusalStore
  readonly bounds: RefusalBounds
  readonly bufferMax: number
  readonly clock: Clock
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class RefusalRecorder implements Service {
  readonly #options: RefusalRecorderOptions
  #buffer: Refusal[] = []
  #writing: Promise<void> | null = null
  #dropped = 0

  constructor(options: RefusalRecorderOptions) {
    this.#options = options
  }

  start(): void {}

  /** Refusals that found the buffer full. */
  get dropped(): number {
    return this.#dropped
  }

  record(refusal: Refusal): void {
    if (this.#options.bounds.maxCount === 0) return
    if (this.#buffer.length >= this.#options.bufferMax) {
      this.#dropped += 1
      return
    }
    this.#buffer.push(refusal)
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null
    })
  }

  async stop(): Promise<void> {
    await this.#writing
  }

  async #write(): Promise<void> {
    const { store, bounds, clock, onTrouble } = this.#options
    while (this.#buffer.length > 0) {
      const batch = this.#buffer
      this.#buffer = []
      try {
        await store.add(batch, bounds, clock.now())
      } catch (error) {
        this.#dropped += batch.length
        onTrouble('keep refusals', error)
      }
    }
  }
}
