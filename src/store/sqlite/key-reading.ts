// When the keys that StoredKeys wants to know of are read: slice by slice, each as a job of the writer's own in its queue, with a rest in
// between that is long enough for it to take no more than a fifth of a core, or of a slow disk.
// Promises: it reads as long as there is more, and never after it was stopped. A slice that fails is tried again, a while later: it
// only spares lookups, and what is wrong with the disk or the file shows where a message needs it.

import type { StoredKeys } from './stored-keys.ts'

const LEAST_REST_MS = 1
/** Of what the slice took. */
const REST_SHARE = 4
const RETRY_MS = 60_000

export interface KeyReadingOptions {
  readonly stored: Pick<StoredKeys, 'hasMore' | 'readSome'>
  /** Puts it into the queue, from which `read` is called. */
  readonly enqueue: () => void
  readonly now?: () => number
}

export class KeyReading {
  readonly #options: KeyReadingOptions
  readonly #now: () => number
  #restMs = LEAST_REST_MS
  /** It rests, or is in the queue. */
  #isDue = false
  #isStopped = false

  constructor(options: KeyReadingOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** There may be more to read: after every job. */
  look(): void {
    if (this.#isDue || this.#isStopped || !this.#options.stored.hasMore) return
    this.#isDue = true
    setTimeout(() => {
      if (!this.#isStopped) this.#options.enqueue()
    }, this.#restMs).unref()
  }

  /** Its turn has come. */
  read(): void {
    this.#isDue = false
    if (this.#isStopped) return
    const startedAt = this.#now()
    try {
      this.#options.stored.readSome()
      // Timers cut off what is less than a millisecond.
      this.#restMs = Math.max(LEAST_REST_MS, Math.ceil(REST_SHARE * (this.#now() - startedAt)))
    } catch {
      this.#restMs = RETRY_MS
    }
  }

  stop(): void {
    this.#isStopped = true
  }
}
