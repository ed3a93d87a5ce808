// Appends the erasure log to its file beside the backups: when something was erased, and every second, since a command or another
// node may have erased.

import { appendErasures } from './log-file.ts'
import { PeriodicTask, type Service } from '../runtime/service.ts'
import type { ErasureStore } from '../store/contract/erasures.ts'

const EVERY_MS = 1000

export interface ErasureLogCopyOptions {
  readonly erasures: Pick<ErasureStore, 'log' | 'logId'>
  /** Null: there is no such file. */
  readonly folder: string | null
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class ErasureLogCopy implements Service {
  readonly #options: ErasureLogCopyOptions
  readonly #timer: PeriodicTask
  /** The id of the last record in the file; null before the first look. */
  #last: number | null = null
  #running: Promise<void> | null = null
  /** A folder that is missing is reported once. */
  #isFailing = false

  constructor(options: ErasureLogCopyOptions) {
    this.#options = options
    this.#timer = new PeriodicTask(EVERY_MS, () => this.run())
  }

  start(): void {
    if (this.#options.folder !== null) this.#timer.start()
  }

  async stop(): Promise<void> {
    await this.#timer.stop()
    await this.#running
  }

  /** One run at a time. */
  run(): Promise<void> {
    this.#running ??= this.#append().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #append(): Promise<void> {
    const { erasures, folder, onTrouble } = this.#options
    if (folder === null) return
    try {
      if (this.#last !== null && (await erasures.log(this.#last, 1)).length === 0) return
      this.#last = await appendErasures(folder, erasures)
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) onTrouble('write the erasure log beside the backups', error)
      this.#isFailing = true
    }
  }
}
