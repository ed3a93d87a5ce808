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

/** Damage found by the database's own check. */
export interface StructureProblem {
  /** The index can be rebuilt. */
  readonly part: 'journal' | 'index'
  readonly file: string
  /** The table or index of it, where the check names one. */
  readonly table: string | null
  /** In the words of the database. */
  readonly problem: string
}

export interface UnreadableIds {
  readonly ids: number
  readonly ranges: readonly { readonly first: number; readonly last: number }[]
}

export interface Diagnosis {
  /** Empty: no damage, or the database has no such check. */
  structure(): Promise<readonly StructureProblem[]>
  /**
   * Transactions of other programs that hold the watermark back now, the oldest first. Empty on a store with one
   * writer.
   */
  blockingTransactions(): Promise<readonly BlockingTransaction[]>
  /** Empty on a store without files of its own. */
  openFiles(): Promise<readonly OpenFile[]>
  /** Events that could not be indexed. */
  unindexed(): Promise<number>
  /** Ids that the indexer passed over, since damaged pages hide their rows: how many, and the first ranges. */
  unreadable(): Promise<UnreadableIds>
}
