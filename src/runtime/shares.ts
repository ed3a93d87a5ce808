// Shares of something scarce: a holder may have as much as is still free. One alone gets half, two get a third each, and there
// is always room for the next one.

export class Shares {
  readonly #max: number
  readonly #heldBy = new Map<string, number>()
  #held = 0

  constructor(max: number) {
    this.#max = max
  }

  /** What all holders have together. */
  get held(): number {
    return this.#held
  }

  /**
   * False if the holder would have more than is left free. `own`: what the holder took before for the same purpose; if nothing
   * else is held, more is always given.
   */
  take(holder: string, amount: number, own = 0): boolean {
    const held = (this.#heldBy.get(holder) ?? 0) + amount
    if (held > this.#max - this.#held - amount && this.#held > own) return false
    this.#held += amount
    this.#heldBy.set(holder, held)
    return true
  }

  giveBack(holder: string, amount: number): void {
    const left = (this.#heldBy.get(holder) ?? 0) - amount
    this.#held -= amount
    if (left > 0) this.#heldBy.set(holder, left)
    else this.#heldBy.delete(holder)
  }
}
