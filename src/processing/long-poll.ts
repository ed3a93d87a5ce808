// Waiting for something to claim. All who wait on this node share one look at the store: after a hint (something was
// indexed, released or acknowledged here), when the first back-off or lease is over, and once a second for what other nodes
// did. So a hundred idle long polls cost one small read a second.
//
// Of those who wait for the same queue (and the same conversation, if they name one) one is woken at a time, the longest-waiting first; it claims, and the next look wakes
// the next if there is more.

import type { Service } from '../runtime/service.ts'
import type { ProcessingStore, QueueName } from '../store/contract/processing.ts'

const LOOK_EVERY_MS = 1000
/** Between two looks, so that a stream of hints does not become a stream of reads. */
const REST_MS = 25
/** Who was woken and found nothing (its filter fits nothing, or another was quicker) is not woken again before. */
const PAUSE_MS = 250
/** Looks that should have been told of by now. */
const SILENCE_MS = 2 * LOOK_EVERY_MS
/** So many queues are remembered for having nothing. */
const MOST_EMPTY = 1000

export interface ClaimQueue extends QueueName {
  readonly ordered: boolean
  /** Only events of this conversation: who waits for another must not be woken in its place. */
  readonly channelRef: string | null
}

interface Waiter {
  readonly queue: ClaimQueue
  readonly key: string
  readonly notBefore: number
  /** False: there is nothing to look for, it only ends. */
  wake(isReady: boolean): void
}

export interface LongPollOptions {
  readonly ready: ProcessingStore['ready']
  /** The clock that leases are told by. */
  readonly now: () => number
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class LongPolls implements Service {
  readonly #options: LongPollOptions
  #waiters: Waiter[] = []
  #timer: NodeJS.Timeout | null = null
  #timerAt = 0
  #lookedAt = 0
  /** When the store last told what is ready. */
  #toldAt = Number.NEGATIVE_INFINITY
  #looking = false
  #hinted = false
  #hints = 0
  /** Queues in which a claim found nothing since the last hint, and when. */
  readonly #emptyAt = new Map<string, number>()
  #stopped = false

  constructor(options: LongPollOptions) {
    this.#options = options
  }

  start(): void {}

  /** Nobody waits any longer, and nobody will. */
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
    if (this.#waiters.length > 0) this.#lookIn(0)
  }

  /** Whoever claims says what came of it: those who would wait after the same claim need not make it too, a hundred of them at once. */
  trackClaim(queue: ClaimQueue): (foundNothing: boolean) => void {
    const hints = this.#hints
    return (foundNothing) => {
      if (!foundNothing || hints !== this.#hints) return
      if (this.#emptyAt.size >= MOST_EMPTY) this.#emptyAt.clear()
      this.#emptyAt.set(keyOf(queue), performance.now())
    }
  }

  /** A claim found nothing there a moment ago. What another node did since then is found by the next look. */
  isEmpty(queue: ClaimQueue): boolean {
    const at = this.#emptyAt.get(keyOf(queue))
    return at !== undefined && performance.now() - at < PAUSE_MS
  }

  /** True when a claim may find something, or nobody knows; false when the time is over, the client is gone, or the service stops. */
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
      // If the store has not told for a while it may be away, and that is for the claim to say.
      const timer = setTimeout(() => end(performance.now() - this.#toldAt > SILENCE_MS), timeoutMs)
      gone.addEventListener('abort', leave)
      this.#waiters.push(waiter)
      // What came between the claim that found nothing and this wait has been hinted at.
      this.#lookIn(this.#hinted && !isAgain ? 0 : PAUSE_MS)
    })
  }

  #lookIn(ms: number): void {
    const now = performance.now()
    const at = Math.max(now + ms, this.#lookedAt + REST_MS)
    if (this.#stopped || this.#looking || (this.#timer && this.#timerAt <= at)) return
    if (this.#timer) clearTimeout(this.#timer)
    this.#timerAt = at
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#look()
    }, at - now)
  }

  async #look(): Promise<void> {
    this.#looking = true
    this.#hinted = false
    let next = LOOK_EVERY_MS
    try {
      next = await this.#wakeReady()
    } catch (error) {
      this.#options.onTrouble('look for events to claim', error)
    }
    this.#looking = false
    this.#lookedAt = performance.now()
    if (this.#waiters.length > 0) this.#lookIn(this.#hinted ? 0 : next)
  }

  /** When to look again at the latest. */
  async #wakeReady(): Promise<number> {
    const first = new Map<string, Waiter>()
    const began = performance.now()
    for (const waiter of this.#waiters) {
      if (waiter.notBefore <= began && !first.has(waiter.key)) first.set(waiter.key, waiter)
    }
    const resting = this.#waiters.some(({ notBefore }) => notBefore > began)
    let next = resting ? PAUSE_MS : LOOK_EVERY_MS
    if (first.size === 0) return next
    const waiting = Array.from(first.values())
    const now = this.#options.now()
    const found = await this.#options.ready(
      waiting.map(({ queue }) => queue),
      now,
    )
    this.#toldAt = performance.now()
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
