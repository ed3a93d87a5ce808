// Bounds the bytes that a tenant sends a second: a token bucket of one second for each. A body that was let in is counted once
// its size is known, so that one body may overdraw the bucket; the tenant waits for that afterwards.

import type { Clock } from '../runtime/clock.ts'

/** About 2 MB. The tenant that sent longest ago is forgotten first. */
const MAX_TENANTS = 10_000

interface Bucket {
  /** Bytes sent and not yet allowed for. */
  owed: number
  at: number
}

export class ByteRates {
  readonly #perSecond: number
  readonly #clock: Clock
  readonly #buckets = new Map<string, Bucket>()

  /** 0: no limit. */
  constructor(bytesPerSecond: number, clock: Clock) {
    this.#perSecond = bytesPerSecond
    this.#clock = clock
  }

  get size(): number {
    return this.#buckets.size
  }

  /** Null if the tenant may send now; otherwise the seconds to wait. */
  waitS(tenant: string): number | null {
    const bucket = this.#buckets.get(tenant)
    if (bucket === undefined) return null
    const over = this.#owed(bucket) - this.#perSecond
    return over < 0 ? null : Math.max(1, Math.ceil(over / this.#perSecond))
  }

  count(tenant: string, bytes: number): void {
    if (this.#perSecond === 0) return
    const bucket = this.#buckets.get(tenant)
    const owed = (bucket ? this.#owed(bucket) : 0) + bytes
    this.#buckets.delete(tenant)
    if (this.#buckets.size >= MAX_TENANTS) this.#buckets.delete(this.#buckets.keys().next().value ?? '')
    this.#buckets.set(tenant, { owed, at: this.#clock.now() })
  }

  /** A clock that was set back changes nothing. */
  #owed({ owed, at }: Bucket): number {
    const passedMs = Math.max(0, this.#clock.now() - at)
    return Math.max(0, owed - (passedMs * this.#perSecond) / 1000)
  }
}
