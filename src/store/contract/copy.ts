// Copying a database to another store: primary tables are copied row by row, derived ones are rebuilt.
//
// Promises
// - A frozen database accepts no message, token or refusal from any process: an attempt fails as `unavailable`. The
//   frozen state is stored in the database and outlives every process.
// - Rows are read in key order, so that a copy resumes after the last row that was written.
// - A read between two keys ends before the first row that cannot be read, whatever is behind it, and says so.
// - A target stores, in the transaction of the rows, their source database and the position in each table. It accepts
//   rows of that database only, into an empty database only, and no server opens it before the copy is finished.

export type Cell = string | number | null | Uint8Array
export type CopyRow = readonly Cell[]

/** A column holds the same values in every database, whatever its native type. */
export type ColumnType = 'integer' | 'text' | 'bytes'

export interface CopyTable {
  readonly name: string
  readonly columns: Readonly<Record<string, ColumnType>>
  /** Unique; rows are read in this order. */
  readonly key: readonly string[]
  /** Most rows per read. */
  readonly page: number
}

/** A part of a table: the rows after a key, up to another one. */
export interface Stretch {
  /** Null: from the first row. */
  readonly after: CopyRow | null
  /** Null: to the last row. */
  readonly upTo: { readonly key: CopyRow; readonly isInclusive: boolean } | null
  /** From its end to its beginning. */
  readonly isBackwards: boolean
}

export interface StretchRows {
  readonly rows: CopyRow[]
  /** Why the next row cannot be read, in the words of the database; null if it can, or if there is none. */
  readonly damage: string | null
}

/** Identity of a database, beside its rows. */
export interface CopyIdentity {
  readonly databaseUuid: string
  /** The key of the dedupe digests: without it, the copy would take a re-send for a new message. */
  readonly dedupeKey: Uint8Array
  /** The last id given out in each sequence: the copy never reuses an id. */
  readonly lastIds: Readonly<Record<CopySequence, number>>
}

export type CopySequence = 'events' | 'resends' | 'refusals'

/** Progress of a target: the key of the last copied row of each table. */
export interface CopyState {
  readonly sourceUuid: string
  readonly finished: boolean
  readonly positions: Readonly<Record<string, CopyRow | null>>
}

/** One database, as either side of a copy. */
export interface CopySide {
  readonly tables: readonly CopyTable[]
  identity(): Promise<CopyIdentity>
  /** The rows after a key (null: from the first), in key order; empty at the end. */
  read(table: CopyTable, after: CopyRow | null): Promise<CopyRow[]>
  /** The next rows of a stretch, at most a page. */
  readStretch(table: CopyTable, stretch: Stretch): Promise<StretchRows>
  count(table: CopyTable): Promise<number>
  /** Refuses if writers do not let go of the tables in a while. Answers with the mark of this freeze. */
  freeze(): Promise<string>
  /** The mark of the freeze that is in effect; null if the database is not frozen. Another freeze has another mark. */
  freezeMark(): Promise<string | null>
  release(): Promise<void>

  /** The state of the copy into this database; null if it is no target. */
  state(): Promise<CopyState | null>
  /** Refuses a database that holds anything but a copy of this source, or that a server uses. */
  begin(sourceUuid: string): Promise<CopyState>
  /** Writes the rows after a key together with the new position. Refuses if another copy into this database is running. */
  write(sourceUuid: string, table: CopyTable, after: CopyRow | null, rows: readonly CopyRow[]): Promise<void>
  /** Takes over the identity of the source, and opens the database to servers. */
  finish(source: CopyIdentity): Promise<void>
  close(): Promise<void>
}

/** A new database on its way: it has its name once everything is in it. */
export interface SalvageTarget {
  readonly side: CopySide
  publish(): Promise<void>
  /** Removes it; does nothing after `publish`. */
  discard(): Promise<void>
}

/** The key of a row. */
export function keyOf(table: CopyTable, row: CopyRow): CopyRow {
  const names = Object.keys(table.columns)
  return table.key.map((column) => row[names.indexOf(column)] ?? null)
}
