// Hourly cleanup: deletes old traffic counts, expired sessions and links, and old audit entries.

import { KEEP_HOURS_MS, KEEP_MINUTES_MS } from '../model/traffic.ts'
import type { Clock } from '../runtime/clock.ts'
import { PeriodicTask, type Service } from '../runtime/service.ts'
import type { Store } from '../store/contract/store.ts'

const EVERY_MS = 3_600_000

export interface PruningOptions {
  readonly store: Pick<Store, 'operators' | 'index'>
  readonly clock: Clock
  readonly auditMaxAgeMs: number
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class Pruning implements Service {
  readonly #options: PruningOptions
  readonly #timer: PeriodicTask

  constructor(options: PruningOptions) {
    this.#options = options
    this.#timer = new PeriodicTask(EVERY_MS, () => this.run())
  }

  start(): void {
    this.#timer.start()
  }

  stop(): Promise<void> {
    return this.#timer.stop()
  }

  async run(): Promise<void> {
    const { store, clock, auditMaxAgeMs, onTrouble } = this.#options
    const now = clock.now()
    try {
      await store.index.pruneTraffic(now - KEEP_MINUTES_MS, now - KEEP_HOURS_MS)
      await store.operators.prune(now, now - auditMaxAgeMs)
    } catch (error) {
      onTrouble('delete expired rows', error)
    }
  }
}
