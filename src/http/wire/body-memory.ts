// Bounds the memory of bodies that arrive, are unpacked, or wait to be validated and stored, over all connections, with a share
// for each tenant. Counts what a buffer really takes, not the declared length, which costs an attacker nothing.

import { Shares } from '../../runtime/shares.ts'

/** Not counted for each body: the number of connections bounds it. */
const UNCOUNTED_BYTES = 64 * 1024

export class BodyMemory {
  readonly #shares: Shares

  constructor(maxBytes: number) {
    this.#shares = new Shares(maxBytes)
  }

  /** The bytes that are counted now. */
  get bytes(): number {
    return this.#shares.held
  }

  newReservation(tenant: string): BodyReservation {
    let held = 0
    return {
      growTo: (size) => {
        const more = Math.max(0, size - UNCOUNTED_BYTES) - held
        if (more <= 0) return true
        // The only body may always grow: otherwise a body of the allowed size might never arrive.
        if (!this.#shares.take(tenant, more, held)) return false
        held += more
        return true
      },
      release: () => {
        if (held > 0) this.#shares.giveBack(tenant, held)
        held = 0
      },
    }
  }
}

export interface BodyReservation {
  /** Reserves the size of the buffer; false if the memory, or the tenant's share of it, is in use. */
  growTo(size: number): boolean
  /** May be called again. */
  release(): void
}
