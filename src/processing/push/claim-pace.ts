// When an endpoint's next claim is made, and how many events it takes: many for one that is quick, since a claim is a transaction; few
// for one that is slow, since what it holds waits for it alone and, if this process dies, until its leases expire.
//
// Messages that come in go first: while some wait for the disk, a pause follows that is PAUSE_FACTOR times as long as the events of
// the last claim took. Without it, four endpoints with a backlog left intake a tenth of its rate.

/** As many as a claim may have. */
const MAX = 200
/** A claim that is used up earlier was too small, and one that lasts longer too large. */
const SHORT_MS = 500
const LONG_MS = 3000
/** So pushes take a fifth of the time that intake could use. */
const PAUSE_FACTOR = 4
/** What an endpoint waits for at most, however long its answers took. */
const MAX_PAUSE_MS = 2000

export class ClaimPace {
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

  claimed(count: number): void {
    this.#last = { at: this.#now(), isFull: count >= this.#limit }
  }

  /** The events of the last claim are delivered, but for some that are under way. Returns how long the next claim waits. */
  usedUp(messagesWait: boolean): number {
    if (this.#last === null) return 0
    const lasted = this.#now() - this.#last.at
    if (this.#last.isFull && lasted < SHORT_MS) this.#limit = Math.min(MAX, 2 * this.#limit)
    if (this.#last.isFull && lasted > LONG_MS) this.#limit = Math.max(this.#min, Math.floor(this.#limit / 2))
    this.#last = null
    return messagesWait ? Math.min(PAUSE_FACTOR * lasted, MAX_PAUSE_MS) : 0
  }
}
