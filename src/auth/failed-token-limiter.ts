// Rate limit for unknown tokens, per client network. It only changes the answer to a token that was checked and found
// invalid: a valid token is never slowed or refused for its address, because many senders share one. Bounded: the networks
// that failed longest ago are evicted first.

import { networkOf } from './network.ts'
import type { RateLimit } from '../model/rate-limit.ts'
import type { Clock } from '../runtime/clock.ts'
import { TokenBucket } from './rate-limit.ts'

/** About 2 MB. */
const MAX_ADDRESSES = 10_000

export interface FailedTokenLimiterOptions {
  /** Null: no limit. */
  readonly limit: RateLimit | null
  readonly clock: Clock
  readonly maxAddresses?: number
}

export class FailedTokenLimiter {
  readonly #limit: RateLimit | null
  readonly #clock: Clock
  readonly #maxAddresses: number
  /** By network, in the order of the last failure. */
  readonly #buckets = new Map<string, TokenBucket>()

  constructor({ limit, clock, maxAddresses = MAX_ADDRESSES }: FailedTokenLimiterOptions) {
    this.#limit = limit
    this.#clock = clock
    this.#maxAddresses = maxAddresses
  }

  get size(): number {
    return this.#buckets.size
  }

  /** Counts a failure. Null while the network is below the limit; otherwise the seconds to wait. */
  recordFailure(address: string | undefined): number | null {
    if (this.#limit === null || address === undefined) return null
    const key = networkOf(address)
    const now = this.#clock.now()
    const bucket = this.#buckets.get(key) ?? new TokenBucket(this.#limit, now)
    this.#buckets.delete(key)
    if (this.#buckets.size >= this.#maxAddresses) this.#buckets.delete(this.#buckets.keys().next().value ?? '')
    this.#buckets.set(key, bucket)
    const { isAllowed, resetS } = bucket.take(now)
    return isAllowed ? null : resetS
  }
}
