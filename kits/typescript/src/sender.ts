// Takes rows from the outbox to the service: several at a time, again after a failure, for ever.

import { MAX_RETRY_AFTER_MS, type Outcome } from './answers.ts'
import { backoffMs } from './backoff.ts'
import type { Outbox, OutboxCounts, OutboxRow } from './outbox.ts'

/** While the token or the address is wrong. */
const WAIT_FOR_FIX_MS = 60_000
/** Rows whose process died, or that another process added, are found this late. */
const LOOK_EVERY_MS = 30_000
const AFTER_DISK_ERROR_MS = 5000
/** After so many failures in a row, rows are tried one by one, with a pause between them. */
const MANY_FAILURES = 8
const LONGEST_GAP_MS = 5000
const PRUNE_EVERY_MS = 3_600_000
const MAX_ERROR_LENGTH = 500

export interface SenderOptions {
  readonly outbox: Outbox
  /** Never rejects. */
  readonly deliver: (row: OutboxRow, signal: AbortSignal) => Promise<Outcome>
  readonly concurrency: number
  readonly keepSentMs: number
  readonly now: () => number
  readonly onProblem: (error: Error) => void
}

export class Sender {
  readonly #options: SenderOptions
  readonly #inFlight = new Set<Promise<void>>()
  readonly #abort = new AbortController()
  #pump: Promise<void> | null = null
  #lookAgain = false
  #isStopped = false
  #stopped: Promise<OutboxCounts> | null = null
  #pausedUntil = 0
  #needsFix = false
  #failures = 0
  #pruneAt = 0
  /** By the clock. Later than any time before the first look: an earlier process may have had a clock that was ahead. */
  #lookedAt = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(options: SenderOptions) {
    this.#options = options
    void this.wake()
  }

  /** Looks for rows that are due. Resolves when those are under way for which there is room. */
  wake(): Promise<void> {
    this.#lookAgain = true
    this.#pump ??= this.#lookWhileAsked()
    return this.#pump
  }

  /** Sends until nothing is due, or nothing can be sent. */
  async flush(): Promise<OutboxCounts> {
    for (;;) {
      await this.wake()
      if (this.#isStopped) return this.stop()
      if (this.#inFlight.size === 0) return this.#options.outbox.counts()
      await Promise.race(this.#inFlight)
    }
  }

  /** Ends what is under way; its rows stay in the outbox. Returns what is left; may be called again. */
  stop(): Promise<OutboxCounts> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<OutboxCounts> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    this.#abort.abort()
    while (this.#pump || this.#inFlight.size > 0) await Promise.all([this.#pump, ...this.#inFlight])
    return this.#options.outbox.counts()
  }

  async #lookWhileAsked(): Promise<void> {
    do {
      this.#lookAgain = false
      await this.#look()
    } while (this.#lookAgain)
    // In the same turn as the last check.
    this.#pump = null
  }

  async #look(): Promise<void> {
    const { outbox, concurrency, keepSentMs, now, onProblem } = this.#options
    const places = this.#failures < MANY_FAILURES ? concurrency : 1
    let nextLook = LOOK_EVERY_MS
    try {
      if (now() < this.#lookedAt) {
        // The clock was set back, and nothing waits for it to be as late again.
        this.#pausedUntil = 0
        this.#pruneAt = 0
        await outbox.correctTimes(now() + MAX_RETRY_AFTER_MS, now())
      }
      this.#lookedAt = now()
      if (now() >= this.#pruneAt) {
        this.#pruneAt = now() + PRUNE_EVERY_MS
        await outbox.prune(now() - keepSentMs)
      }
      const room = places - this.#inFlight.size
      if (room > 0 && !this.#isStopped && now() >= this.#pausedUntil) {
        for (const row of await outbox.claim(room, now())) this.#start(row)
      }
      const nextAt = outbox.nextAt()
      if (nextAt !== null) nextLook = Math.max(nextAt, this.#pausedUntil) - now()
    } catch (error) {
      nextLook = AFTER_DISK_ERROR_MS
      onProblem(error as Error)
    }
    // With all places taken, the end of a request looks again.
    if (this.#inFlight.size < places) this.#lookIn(nextLook)
  }

  /** With a timer that keeps no process alive: what waits is on disk. */
  #lookIn(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#isStopped) return
    this.#timer = setTimeout(() => void this.wake(), Math.min(LOOK_EVERY_MS, Math.max(1, ms)))
    this.#timer.unref()
  }

  #start(row: OutboxRow): void {
    const one = this.#sendOne(row)
      .catch((error: Error) => this.#options.onProblem(error))
      .then(() => {
        this.#inFlight.delete(one)
        if (!this.#isStopped) void this.wake()
      })
    this.#inFlight.add(one)
  }

  async #sendOne(row: OutboxRow): Promise<void> {
    const { outbox, deliver, now, onProblem } = this.#options
    const outcome = await deliver(row, this.#abort.signal)
    if (outcome.kind === 'stored') {
      this.#isAnswered()
      return outbox.sent(row, now())
    }
    const { error } = outcome
    const text = `${error.code}: ${error.message}`.slice(0, MAX_ERROR_LENGTH)
    if (outcome.kind === 'refused') {
      this.#isAnswered()
      await outbox.refused(row, text, now())
      return onProblem(error)
    }
    if (outcome.kind === 'wait') {
      // Said once, until an answer shows that it is mended.
      if (!this.#needsFix) onProblem(error)
      this.#needsFix = true
      this.#pausedUntil = now() + WAIT_FOR_FIX_MS
      return outbox.retry(row, now(), text, now())
    }
    if (this.#isStopped) return outbox.retry(row, now(), text, now())
    this.#failures += 1
    if (this.#failures >= MANY_FAILURES) this.#pausedUntil = now() + Math.random() * LONGEST_GAP_MS
    return outbox.retry(row, now() + backoffMs(row.attempts, outcome.error.retryAfterMs), text, now())
  }

  #isAnswered(): void {
    this.#failures = 0
    this.#needsFix = false
  }
}
