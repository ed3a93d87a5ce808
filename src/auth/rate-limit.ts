// Token bucket: allows a burst of as many requests as the limit has, and refills evenly over its window. Each cached token
// has one; nodes count separately.

import type { RateLimit } from '../model/rate-limit.ts'

/** The state of a bucket after a request. */
export interface Allowance {
  readonly isAllowed: boolean
  /** Whole requests that are left now. */
  readonly remaining: number
  /** Seconds until there is one more (none left), or until all are back; at least 1 while any is missing. */
  readonly resetS: number
}

/** Counts in request-milliseconds, which are integers well below 2^53, so that rounding refuses nobody. */
export class TokenBucket {
  readonly limit: RateLimit
  readonly #full: number
  #level: number
  #filledAt: number

  constructor(limit: RateLimit, now: number) {
    this.limit = limit
    this.#full = limit.requests * limit.windowMs
    this.#level = this.#full
    this.#filledAt = now
  }

  /** Takes one request, if one is left. */
  take(now: number): Allowance {
    this.#fill(now)
    const isAllowed = this.#isOneLeft
    if (isAllowed) this.#level -= this.limit.windowMs
    return this.#allowance(isAllowed)
  }

  /** The state, without taking one. */
  peek(now: number): Allowance {
    this.#fill(now)
    return this.#allowance(this.#isOneLeft)
  }

  get #isOneLeft(): boolean {
    return this.#level >= this.limit.windowMs
  }

  /** A clock that was set back changes nothing. */
  #fill(now: number): void {
    const passedMs = Math.max(0, now - this.#filledAt)
    this.#filledAt = now
    this.#level = Math.min(this.#full, this.#level + passedMs * this.limit.requests)
  }

  #allowance(isAllowed: boolean): Allowance {
    const { requests, windowMs } = this.limit
    const missing = (this.#isOneLeft ? this.#full : windowMs) - this.#level
    return {
      isAllowed,
      remaining: Math.floor(this.#level / windowMs),
      resetS: Math.ceil(missing / (requests * 1000)),
    }
  }
}
