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

export class TokenBucket {
  readonly limit: RateLimit
  readonly #perMs: number
  #level: number
  #filledAt: number

  constructor(limit: RateLimit, now: number) {
    this.limit = limit
    this.#perMs = limit.requests / limit.windowMs
    this.#level = limit.requests
    this.#filledAt = now
  }

  /** Takes one request out, if there is one. */
  take(now: number): Allowance {
    this.#fill(now)
    const isAllowed = this.#level >= 1
    if (isAllowed) this.#level -= 1
    return this.#allowance(isAllowed)
  }

  /** Where it stands, nothing taken. */
  look(now: number): Allowance {
    this.#fill(now)
    return this.#allowance(this.#level >= 1)
  }

  /** A clock that was set back fills nothing and takes nothing away. */
  #fill(now: number): void {
    const passedMs = Math.max(0, now - this.#filledAt)
    this.#filledAt = now
    this.#level = Math.min(this.limit.requests, this.#level + passedMs * this.#perMs)
  }

  #allowance(isAllowed: boolean): Allowance {
    const missing = this.#level >= 1 ? this.limit.requests - this.#level : 1 - this.#level
    return {
      isAllowed,
      remaining: Math.floor(this.#level),
      // A sliver that arithmetic left over is not a second of waiting.
      resetS: Math.max(0, Math.ceil(missing / this.#perMs / 1000 - 1e-6)),
    }
  }
}
