// How often a token may ask: a bucket that holds as many requests as the limit allows and fills up evenly over its window.
// One bucket for a token, kept with the token in memory: as many as there are tokens in use, and gone with them. A node counts
// what it sees itself.

import type { RateLimit } from '../model/rate-limit.ts'

/** Where a token stands after a request. */
export interface Allowance {
  readonly isAllowed: boolean
  /** Whole requests that are left now. */
  readonly remaining: number
  /** Seconds until there is one more (none left), or until all are back; at least 1 while any is missing. */
  readonly resetS: number
}

/**
 * Counted in request-milliseconds, of which a request takes as many as its window is long: whole numbers, well below 2^53 at the
 * largest limit there is, so that nobody is refused, or told to wait, for what arithmetic left over.
 */
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

  /** Takes one request out, if there is one. */
  take(now: number): Allowance {
    this.#fill(now)
    const isAllowed = this.#isOneLeft
    if (isAllowed) this.#level -= this.limit.windowMs
    return this.#allowance(isAllowed)
  }

  /** Where it stands, nothing taken. */
  look(now: number): Allowance {
    this.#fill(now)
    return this.#allowance(this.#isOneLeft)
  }

  get #isOneLeft(): boolean {
    return this.#level >= this.limit.windowMs
  }

  /** A clock that was set back fills nothing and takes nothing away. */
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
