// Moving a database to another store: what is primary is copied row by row, what is derived is built anew.
//
// Promises
// - A frozen database takes no message, token or refusal, through whatever process: an attempt fails as `unavailable`.
//   Being frozen is part of the database and outlives every process.
// - Rows come in the order of the table's key, so that a copy goes on after the last row that was written.
// - A target remembers, in the transaction of the rows, which database they came from and how far each table is. It takes
//   rows of that database only, into an empty database only, and no server opens it before the copy is finished.

export type Cell = string | number | null | Uint8Array
export type CopyRow = readonly Cell[]

/** A column holds the same in every database, whatever its type is called there. */
export type ColumnType = 'integer' | 'text' | 'bytes'

export interface CopyTable {
  readonly name: string
  readonly columns: Readonly<Record<string, ColumnType>>
  /** Unique, and what rows are read by. */
  readonly key: readonly string[]
  /** How many rows at once, at most. */
  readonly page: number
}

/** What a database is besides its rows. */
export interface CopyIdentity {
  readonly databaseUuid: string
  /** The key of the dedupe digests: without it, the same message would be another one in the copy. */
  readonly dedupeKey: Uint8Array
  /** The last id given out in each sequence: none is ever used again, in the copy either. */
  readonly lastIds: Readonly<Record<CopySequence, number>>
}

export type CopySequence = 'events' | 'resends' | 'refusals'

/** How far a target is: the key of the last row of each table that was begun. */
export interface CopyState {
  readonly sourceUuid: string
  readonly finished: boolean
  readonly positions: Readonly<Record<string, CopyRow | null>>
}

/** One database, as either side of a copy. */
export interface CopySide {
  readonly tables: readonly CopyTable[]
  identity(): Promise<CopyIdentity>
  /** The rows after a key (null: from the first), in the order of the key. None: there are no more. */
  read(table: CopyTable, after: CopyRow | null): Promise<CopyRow[]>
  count(table: CopyTable): Promise<number>
  /** Refuses if writers do not let go of the tables in a while. Answers with the mark of this freeze. */
  freeze(): Promise<string>
  /** The mark of the freeze that is in effect; null if the database is not frozen. Another freeze has another mark. */
  freezeMark(): Promise<string | null>
  release(): Promise<void>

  /** What it is a copy of; null if it is none. */
  state(): Promise<CopyState | null>
  /** Refuses a database that holds anything but a copy of this source, or that a server is using. */
  begin(sourceUuid: string): Promise<CopyState>
  /** The rows after a key, and that the table is copied up to the last of them. Refused if another copy is at work here. */
  write(sourceUuid: string, table: CopyTable, after: CopyRow | null, rows: readonly CopyRow[]): Promise<void>
  /** Takes over what is not in rows, and opens the database to servers. */
  finish(source: CopyIdentity): Promise<void>
  close(): Promise<void>
}

/** The key of a row. */
export function keyOf(table: CopyTable, row: CopyRow): CopyRow {
  const names = Object.keys(table.columns)
  return table.key.map((column) => row[names.indexOf(column)] ?? null)
}
