// Keeps one lease: extends it in time, and knows when it is lost, by an answer or because it could not be extended.

import { backoffMs } from './backoff.ts'
import type { ClaimsClient, LeasedEvent } from './claims-client.ts'
import { LeaseLost, Refused } from './errors.ts'

export class Lease {
  readonly #claims: ClaimsClient
  readonly #leaseS: number
  readonly #lost = new AbortController()
  readonly #over = new AbortController()
  /** By performance.now(), and never later than by the service's clock: counted from before the request. */
  #endsAt: number
  #event: LeasedEvent
  #timer: NodeJS.Timeout | undefined
  #failures = 0

  constructor(claims: ClaimsClient, leaseS: number, event: LeasedEvent, claimedAt: number) {
    this.#claims = claims
    this.#leaseS = leaseS
    this.#event = event
    this.#endsAt = claimedAt + 1000 * leaseS
    this.#extendIn((1000 * leaseS) / 3)
  }

  /** Aborted when the lease is lost: calls with it are pointless. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Aborted when the lease is lost, with LeaseLost as its reason, or its worker has no more time. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  /** The event of the run that is worked on: extending it extends those behind it. */
  set event(event: LeasedEvent) {
    this.#event = event
  }

  lose(): void {
    this.end()
    const reason = new LeaseLost(this.#event.id)
    this.#lost.abort(reason)
    this.#over.abort(reason)
  }

  outOfTime(): void {
    this.#over.abort(new Error('The time of the stop is over.'))
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #extendIn(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#extend(), Math.max(0, Math.min(ms, this.#endsAt - performance.now())))
  }

  async #extend(): Promise<void> {
    const timer = this.#timer
    const event = this.#event
    const askedAt = performance.now()
    if (askedAt >= this.#endsAt) return this.lose()
    const tooLate = AbortSignal.timeout(Math.ceil(this.#endsAt - askedAt))
    try {
      const isExtended = await this.#claims.extend(event, this.#leaseS, tooLate)
      // It may have ended meanwhile, or the event was acknowledged and the next one is worked on.
      if (this.#timer !== timer) return
      if (!isExtended) return event === this.#event ? this.lose() : this.#extendIn(0)
      this.#failures = 0
      this.#endsAt = askedAt + 1000 * this.#leaseS
      this.#extendIn((1000 * this.#leaseS) / 3)
    } catch (error) {
      if (this.#timer !== timer) return
      if (error instanceof Refused) return this.lose()
      this.#failures += 1
      this.#extendIn(backoffMs(this.#failures, null, (1000 * this.#leaseS) / 6))
    }
  }
}
