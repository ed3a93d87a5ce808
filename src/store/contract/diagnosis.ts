// Self-checks of a store, for `./intray doctor`.

/** An open transaction that holds the watermark back. */
export interface BlockingTransaction {
  /** Process id on the database server. */
  readonly pid: number
  readonly database: string
  readonly application: string
  /** Its state in the server's words, such as `idle in transaction`. */
  readonly state: string
  readonly seconds: number
}

/** A file of the database that every user of the machine may read or write. */
export interface OpenFile {
  readonly path: string
  /** The permission bits. */
  readonly mode: number
}

export interface Diagnosis {
  /** Structural damage found by the database's own check, in its words. Empty: none, or the database has no such check. */
  structure(): Promise<readonly string[]>
  /**
   * Transactions of other programs that hold the watermark back now, the oldest first. Empty on a store with one
   * writer.
   */
  blockingTransactions(): Promise<readonly BlockingTransaction[]>
  /** Empty on a store without files of its own. */
  openFiles(): Promise<readonly OpenFile[]>
  /** Events that could not be indexed. */
  unindexed(): Promise<number>
}
