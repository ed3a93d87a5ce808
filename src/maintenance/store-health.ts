// Whether the store accepts writes. A failed commit turns readiness off; load balancers then send no messages, so a
// small write every second finds out when the store is back.

import type { Problem } from '../model/errors.ts'
import { errorText, type Logger } from '../runtime/log.ts'
import { PeriodicTask, type Service } from '../runtime/service.ts'

const PROBE_EVERY_MS = 1000

export interface StoreHealthOptions {
  readonly probe: () => Promise<void>
  readonly logger: Logger
}

export class StoreHealth implements Service {
  readonly #options: StoreHealthOptions
  readonly #prober: PeriodicTask
  #failing = false

  constructor(options: StoreHealthOptions) {
    this.#options = options
    this.#prober = new PeriodicTask(PROBE_EVERY_MS, () => this.#probe())
  }

  start(): void {
    this.#prober.start()
  }

  stop(): Promise<void> {
    return this.#prober.stop()
  }

  /** Null while the store takes writes. */
  get problem(): Problem | null {
    return this.#failing
      ? {
          code: 'storage_unavailable',
          message: 'The database takes no writes at the moment. Try again after Retry-After seconds.',
        }
      : null
  }

  /** Records the outcome of a commit: null, or its failure. */
  note(failure: unknown): void {
    const failing = failure !== null
    if (failing === this.#failing) return
    this.#failing = failing
    if (failing) this.#options.logger.error('the store takes no writes; answering 503', { error: errorText(failure) })
    else this.#options.logger.info('the store takes writes again')
  }

  async #probe(): Promise<void> {
    if (!this.#failing) return
    await this.#options.probe().then(
      () => this.note(null),
      (failure: unknown) => this.note(failure),
    )
  }
}
