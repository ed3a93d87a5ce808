// Bounds the memory of bodies that arrive, are unpacked, or wait to be validated and stored, over all connections. Counts what a buffer really takes, not the
// declared length, which costs an attacker nothing.

/** Not counted for each body: the number of connections bounds it. */
const UNCOUNTED_BYTES = 64 * 1024

export class BodyMemory {
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The bytes that are counted now. */
  get bytes(): number {
    return this.#bytes
  }

  newReservation(): BodyReservation {
    let held = 0
    return {
      growTo: (size) => {
        const more = Math.max(0, size - UNCOUNTED_BYTES) - held
        if (more <= 0) return true
        // The only body may always grow: otherwise a body of the allowed size might never arrive.
        if (this.#bytes + more > this.#maxBytes && this.#bytes > held) return false
        this.#bytes += more
        held += more
        return true
      },
      release: () => {
        this.#bytes -= held
        held = 0
      },
    }
  }
}

export interface BodyReservation {
  /** Reserves the size of the buffer; false if the memory is in use. */
  growTo(size: number): boolean
  /** May be called again. */
  release(): void
}
