// Long polls: claims that wait for events. All waiting claims of a node share one poll of the store: after a hint (this node
// indexed, released or acknowledged something), when the first back-off or lease ends, and once a second for changes by other
// nodes. A hundred idle long polls cost one small read a second.
//
// Of the claims that wait for one queue (and one conversation, if they name it) a poll wakes the longest-waiting one. It
// claims, and the next poll wakes the next claim if events are left.

import type { Service } from '../runtime/service.ts'
import type { ProcessingStore, QueueName } from '../store/contract/processing.ts'

const POLL_EVERY_MS = 1000
/** At least this long between two polls, however many hints arrive. */
const MIN_GAP_MS = 25
/** A claim that was woken and found nothing (another was quicker, or its filter matches nothing) is not woken again before. */
const PAUSE_MS = 250
/** Without an answer of the store for this long, the store may be unreachable. */
const SILENCE_MS = 2 * POLL_EVERY_MS
/** Queues remembered as empty, at most. */
const MAX_EMPTY = 1000

export interface ClaimQueue extends QueueName {
  readonly ordered: boolean
  /** Only events of this conversation. Part of the key, so that a poll does not wake a claim for another conversation. */
  readonly channelRef: string | null
}

interface Waiter {
  readonly queue: ClaimQueue
  readonly key: string
  readonly notBefore: number
  /** False: the wait ends without an event. */
  wake(isReady: boolean): void
}

export interface LongPollOptions {
  readonly ready: ProcessingStore['ready']
  /** The clock of the leases. */
  readonly now: () => number
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class LongPolls implements Service {
  readonly #options: LongPollOptions
  #waiters: Waiter[] = []
  #timer: NodeJS.Timeout | null = null
  #timerAt = 0
  #polledAt = 0
  /** When the store last answered. */
  #answeredAt = Number.NEGATIVE_INFINITY
  #polling = false
  #hinted = false
  #hints = 0
  /** Queues in which a claim found nothing since the last hint, and when. */
  readonly #emptyAt = new Map<string, number>()
  #stopped = false

  constructor(options: LongPollOptions) {
    this.#options = options
  }

  start(): void {}

  /** Ends every wait, and later ones at once. */
  async stop(): Promise<void> {
    this.#stopped = true
    if (this.#timer) clearTimeout(this.#timer)
    for (const waiter of this.#waiters.splice(0)) waiter.wake(false)
  }

  get isStopped(): boolean {
    return this.#stopped
  }

  /** Something may be ready. */
  hint(): void {
    this.#hinted = true
    this.#hints += 1
    this.#emptyAt.clear()
    if (this.#waiters.length > 0) this.#pollIn(0)
  }

  /** Records whether a claim found nothing, so that a hundred claims on one empty queue do not all read the store. */
  trackClaim(queue: ClaimQueue): (foundNothing: boolean) => void {
    const hints = this.#hints
    return (foundNothing) => {
      if (!foundNothing || hints !== this.#hints) return
      if (this.#emptyAt.size >= MAX_EMPTY) this.#emptyAt.clear()
      this.#emptyAt.set(keyOf(queue), performance.now())
    }
  }

  /** True if a claim found nothing there a moment ago. The next poll finds what other nodes did since. */
  isEmpty(queue: ClaimQueue): boolean {
    const at = this.#emptyAt.get(keyOf(queue))
    return at !== undefined && performance.now() - at < PAUSE_MS
  }

  /** True when a claim may find something or the store does not answer; false when the time is over, the client left, or the service stops. */
  async wait(queue: ClaimQueue, timeoutMs: number, gone: AbortSignal, isAgain: boolean): Promise<boolean> {
    if (this.#stopped || gone.aborted || timeoutMs <= 0) return false
    const key = keyOf(queue)
    return new Promise((resolve) => {
      const waiter: Waiter = {
        queue,
        key,
        notBefore: isAgain ? performance.now() + PAUSE_MS : 0,
        wake: (isReady) => {
          clearTimeout(timer)
          gone.removeEventListener('abort', leave)
          resolve(isReady)
        },
      }
      const end = (isReady: boolean) => {
        this.#waiters = this.#waiters.filter((one) => one !== waiter)
        waiter.wake(isReady)
      }
      const leave = () => end(false)
      // If the store has not answered for a while, the caller claims once more, and that claim reports the failure.
      const timer = setTimeout(() => end(performance.now() - this.#answeredAt > SILENCE_MS), timeoutMs)
      gone.addEventListener('abort', leave)
      this.#waiters.push(waiter)
      // A hint has already announced what arrived between the failed claim and this wait.
      this.#pollIn(this.#hinted && !isAgain ? 0 : PAUSE_MS)
    })
  }

  #pollIn(ms: number): void {
    const now = performance.now()
    const at = Math.max(now + ms, this.#polledAt + MIN_GAP_MS)
    if (this.#stopped || this.#polling || (this.#timer && this.#timerAt <= at)) return
    if (this.#timer) clearTimeout(this.#timer)
    this.#timerAt = at
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#poll()
    }, at - now)
  }

  async #poll(): Promise<void> {
    this.#polling = true
    this.#hinted = false
    let next = POLL_EVERY_MS
    try {
      next = await this.#wakeReady()
    } catch (error) {
      this.#options.onTrouble('poll for events to claim', error)
    }
    this.#polling = false
    this.#polledAt = performance.now()
    if (this.#waiters.length > 0) this.#pollIn(this.#hinted ? 0 : next)
  }

  /** The longest time until the next poll. */
  async #wakeReady(): Promise<number> {
    const first = new Map<string, Waiter>()
    const began = performance.now()
    for (const waiter of this.#waiters) {
      if (waiter.notBefore <= began && !first.has(waiter.key)) first.set(waiter.key, waiter)
    }
    const isPausing = this.#waiters.some(({ notBefore }) => notBefore > began)
    let next = isPausing ? PAUSE_MS : POLL_EVERY_MS
    if (first.size === 0) return next
    const waiting = Array.from(first.values())
    const now = this.#options.now()
    const found = await this.#options.ready(
      waiting.map(({ queue }) => queue),
      now,
    )
    this.#answeredAt = performance.now()
    for (const [n, { ready, at }] of found.entries()) {
      const waiter = waiting[n]!
      if (ready && this.#waiters.includes(waiter)) {
        this.#waiters = this.#waiters.filter((one) => one !== waiter)
        waiter.wake(true)
      } else if (at !== null) next = Math.min(next, Math.max(1, at - now))
    }
    return next
  }
}

function keyOf({ tenant, subscription, ordered, channelRef }: ClaimQueue): string {
  return JSON.stringify([tenant.companyId, tenant.accountId, subscription, ordered, channelRef])
}
