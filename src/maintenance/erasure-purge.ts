// Carries on with erasures until neither the index nor a file holds what was erased: when told to, and every second, since a
// command or another node may have erased.

import { PeriodicTask, type Service } from '../runtime/service.ts'
import type { ErasureStore } from '../store/contract/erasures.ts'

const EVERY_MS = 1000

export interface ErasurePurgeOptions {
  readonly erasures: Pick<ErasureStore, 'purge'>
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class ErasurePurge implements Service {
  readonly #options: ErasurePurgeOptions
  readonly #timer: PeriodicTask
  #running: Promise<void> | null = null
  #isStopped = false

  constructor(options: ErasurePurgeOptions) {
    this.#options = options
    this.#timer = new PeriodicTask(EVERY_MS, () => this.run())
  }

  start(): void {
    this.#timer.start()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#timer.stop()
    await this.#running
  }

  /** One run at a time. */
  run(): Promise<void> {
    this.#running ??= this.#purge().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #purge(): Promise<void> {
    const { erasures, onTrouble } = this.#options
    try {
      while (!this.#isStopped) {
        const { more, waits } = await erasures.purge()
        if (!more || waits) return
      }
    } catch (error) {
      onTrouble('remove erased content from the index and the files', error)
    }
  }
}
