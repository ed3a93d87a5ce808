// What a store can tell about itself beyond what it holds: for `./intray doctor`.

/** A transaction that keeps readers from looking further: something that was left open. */
export interface Holder {
  /** The process of the database server that has it. */
  readonly pid: number
  readonly database: string
  readonly application: string
  /** What it is doing, in the server's words, such as `idle in transaction`. */
  readonly state: string
  readonly seconds: number
}

export interface Diagnosis {
  /** What the database's own check finds wrong with its structure, in its words. Empty: nothing, or it has no such check. */
  structure(): Promise<readonly string[]>
  /** Transactions of others that hold the watermark back now, the oldest first. None where writers do not run at once. */
  holders(): Promise<readonly Holder[]>
  /** Events that the index could not read. */
  unindexed(): Promise<number>
}
