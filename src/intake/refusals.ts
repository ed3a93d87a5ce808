// Records refused requests for integrators: after the answer, best effort, through a bounded buffer with a share for each
// tenant. Refusals that do not fit are dropped and counted, so that a flood of them does not slow intake.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Refusal } from '../model/refusal.ts'
import type { Service } from '../runtime/service.ts'
import { Shares } from '../runtime/shares.ts'
import type { RefusalBounds, RefusalStore } from '../store/contract/refusals.ts'

export interface RefusalRecorderOptions {
  readonly store: RefusalStore
  readonly bounds: RefusalBounds
  readonly bufferMax: number
  readonly onTrouble: (doing: string, error: unknown) => void
}

const MAX_BATCH = 16

interface Waiting {
  readonly tenant: string
  readonly make: () => Promise<Refusal>
}

export class RefusalRecorder implements Service {
  readonly #options: RefusalRecorderOptions
  readonly #shares: Shares
  #buffer: Waiting[] = []
  #writing: Promise<void> | null = null
  #batch: Promise<void> = Promise.resolve()
  /** Refusals that were taken into the buffer, and those of them that left it, written or dropped. */
  #taken = 0
  #settled = 0
  #dropped = 0

  constructor(options: RefusalRecorderOptions) {
    this.#options = options
    this.#shares = new Shares(options.bufferMax)
  }

  start(): void {}

  /** Refusals that were not recorded. */
  get dropped(): number {
    return this.#dropped
  }

  /** Making it includes masking its body: `make` is called when it is about to be written, once in a turn. */
  record(tenant: string, make: () => Promise<Refusal>): void {
    const { bounds, bufferMax, onTrouble } = this.#options
    if (bounds.maxCount === 0) return
    if (bufferMax === 0 || !this.#shares.take(tenant, 1)) {
      if (this.#dropped === 0) onTrouble('record refusals', new Error('the buffer is full'))
      this.#dropped += 1
      return
    }
    this.#taken += 1
    this.#buffer.push({ tenant, make })
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null
    })
  }

  /** Resolves once what was recorded before the call is written: later refusals do not delay it. */
  async settled(): Promise<void> {
    const goal = this.#taken
    while (this.#settled < goal) await this.#batch
  }

  async stop(): Promise<void> {
    await this.#writing
  }

  async #write(): Promise<void> {
    while (this.#buffer.length > 0) {
      this.#batch = this.#writeBatch(this.#buffer.splice(0, MAX_BATCH))
      await this.#batch
    }
  }

  async #writeBatch(waiting: readonly Waiting[]): Promise<void> {
    const batch: Refusal[] = []
    for (const { tenant, make } of waiting) {
      this.#shares.giveBack(tenant, 1)
      try {
        batch.push(await make())
      } catch (error) {
        this.#dropped += 1
        this.#options.onTrouble('record refusals', error)
      }
      await nextTurn()
    }
    await this.#add(batch)
    this.#settled += waiting.length
  }

  async #add(batch: readonly Refusal[]): Promise<void> {
    const { store, bounds, onTrouble } = this.#options
    if (batch.length === 0) return
    try {
      await store.add(batch, bounds)
    } catch (error) {
      this.#dropped += batch.length
      onTrouble('record refusals', error)
    }
  }
}
