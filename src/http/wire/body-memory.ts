// How much of bodies that are still arriving is held at once, over all connections. Small bodies are bounded by the number of
// connections; what a body takes beyond that is counted here as it grows, not as it is announced: an announcement costs an
// attacker nothing, and must not cost the others their room.

/** So much of each body is not counted. */
const UNCOUNTED_BYTES = 64 * 1024

export class BodyMemory {
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** What is counted now. */
  get bytes(): number {
    return this.#bytes
  }

  /** The share of one body, as large as its buffer is. */
  begin(): Share {
    let held = 0
    return {
      grow: (size) => {
        const more = Math.max(0, size - UNCOUNTED_BYTES) - held
        if (more <= 0) return true
        // Alone it may always go on: otherwise a body as large as is allowed could never arrive.
        if (this.#bytes + more > this.#maxBytes && this.#bytes > held) return false
        this.#bytes += more
        held += more
        return true
      },
      end: () => {
        this.#bytes -= held
        held = 0
      },
    }
  }
}

export interface Share {
  /** The buffer is to become this large; false if there is no room. */
  grow(size: number): boolean
  /** Gives all of it back. Calling it again is fine. */
  end(): void
}
