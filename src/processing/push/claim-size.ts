// How many events an endpoint's next claim takes: many for one that is quick, since a claim is a transaction; few for one that is
// slow, since what it holds waits for it alone and, if this process dies, until its leases expire.

/** As many as a claim may have. */
const MAX = 200
/** A claim that is used up earlier was too small, and one that lasts longer too large. */
const SHORT_MS = 500
const LONG_MS = 3000

export class ClaimSize {
  readonly #min: number
  readonly #now: () => number
  #limit: number
  #last: { readonly at: number; readonly isFull: boolean } | null = null

  constructor(concurrency: number, now: () => number = () => performance.now()) {
    this.#min = concurrency
    this.#limit = Math.min(MAX, 2 * concurrency)
    this.#now = now
  }

  get limit(): number {
    return this.#limit
  }

  /** A claim has been answered: the one before is used up but for what is under way. */
  claimed(count: number): void {
    const at = this.#now()
    const isFull = count >= this.#limit
    if (this.#last?.isFull) {
      const lasted = at - this.#last.at
      if (lasted < SHORT_MS) this.#limit = Math.min(MAX, 2 * this.#limit)
      if (lasted > LONG_MS) this.#limit = Math.max(this.#min, Math.floor(this.#limit / 2))
    }
    this.#last = { at, isFull }
  }
}
