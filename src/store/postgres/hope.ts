// Whether a batch may hope that none of its messages came before: it is then stored without looking for each of them first, and
// once more with a look if the hope was in vain. What that leaves behind is cleared away by PostgreSQL's vacuum, so there is no
// hope for a while after a message that did come before, and none for a few messages, which save nothing by it. A node's own retry
// is no such message: it is sent as it was the first time.

import type { AppendOutcome } from '../contract/append.ts'

const FEWEST = 8
const CAREFUL_BATCHES = 64

export class Hope {
  readonly #carefulBatches: number
  #carefulLeft = 0

  constructor(carefulBatches = CAREFUL_BATCHES) {
    this.#carefulBatches = carefulBatches
  }

  /** Asked once for each batch. */
  allows(messages: number): boolean {
    if (messages < FEWEST) return false
    if (this.#carefulLeft === 0) return true
    this.#carefulLeft -= 1
    return false
  }

  learn(outcomes: readonly AppendOutcome[]): void {
    if (outcomes.some(({ outcome }) => outcome === 'duplicate' || outcome === 'conflict'))
      this.#carefulLeft = this.#carefulBatches
  }
}
