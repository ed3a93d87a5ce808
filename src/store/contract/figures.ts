// Figures of a store for whoever watches it: cheap enough to be asked for every few seconds, whatever is stored. They go by
// indexes and stop counting somewhere.

export interface StoreFigures {
  /** Leases that have not expired; counting ends at 10,000. */
  readonly leases: number
  /** When the oldest event was received that a subscription in use has still to hand out; null if there is none. */
  readonly oldestPendingAt: number | null
  /**
   * When the oldest message was received that is committed and which readers may not see yet, since a transaction begun before
   * is still open; null if there is none, or where readers see every commit at once.
   */
  readonly unseenSince: number | null
}

export interface FigureReader {
  read(now: number): Promise<StoreFigures>
}
