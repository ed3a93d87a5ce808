// Back-off for addresses that keep coming with tokens nobody knows. It only ever changes the answer to a token that has been
// looked at and found wrong: a valid token is never slowed or refused for where it comes from, since many share an address
// (docs/internals/adr/0025). Bounded: the addresses that failed longest ago are forgotten first.

import { networkOf } from './network.ts'
import type { RateLimit } from '../model/rate-limit.ts'
import type { Clock } from '../runtime/clock.ts'
import { TokenBucket } from './rate-limit.ts'

/** Some 2 MB. Whoever has more addresses than this to come from is not stopped by counting them. */
const MAX_ADDRESSES = 10_000

export interface FailedTokensOptions {
  /** Null: nothing is counted. */
  readonly limit: RateLimit | null
  readonly clock: Clock
  readonly maxAddresses?: number
}

export class FailedTokens {
  readonly #limit: RateLimit | null
  readonly #clock: Clock
  readonly #maxAddresses: number
  /** By network, the one that failed last at the end. */
  readonly #buckets = new Map<string, TokenBucket>()

  constructor({ limit, clock, maxAddresses = MAX_ADDRESSES }: FailedTokensOptions) {
    this.#limit = limit
    this.#clock = clock
    this.#maxAddresses = maxAddresses
  }

  get size(): number {
    return this.#buckets.size
  }

  /** Counts a failure. Null while the address may go on trying; otherwise how many seconds it should wait. */
  note(address: string | undefined): number | null {
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
