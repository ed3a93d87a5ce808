// Store metrics for monitoring: cheap enough to read every few seconds at any store size. They use indexes, and counts
// have a limit.

export interface StoreMetrics {
  /** Unexpired leases; counting ends at 10,000. */
  readonly leases: number
  /** Arrival time of the oldest event that a subscription in use still has to hand out; null if there is none. */
  readonly oldestPendingAt: number | null
  /**
   * Arrival time of the oldest committed message that readers cannot see yet, since an older transaction is still open;
   * null if there is none, or if readers of this store see every commit at once.
   */
  readonly unseenSince: number | null
  /** Rows of the erasure log. */
  readonly erasures: number
  /** Those of them whose copies in the index or in the files may still be there. */
  readonly erasuresPending: number
  /** Size of the database, with its index and what it writes ahead. */
  readonly databaseBytes: number
  /** The disk with the database; null if a database server has it. */
  readonly disk: { readonly bytes: number; readonly freeBytes: number } | null
  /** Ids that the indexer passed over, since damaged pages hide their rows. */
  readonly unreadable: number
}

export interface MetricsReader {
  read(now: number): Promise<StoreMetrics>
}
