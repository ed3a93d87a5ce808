// Copying a database to another store while its senders go on: primary tables are copied row by row, derived ones are built.
//
//   notes changes ─► every row, page by page ─► rows added or changed meanwhile, in rounds ─► frozen: the rest ─► finished
//
// Promises
// - From `startNoting` on, no change of a copied table is missed: a row is appended in the order of ids, or its key is noted in the
//   transaction of its change.
// - A frozen database accepts no message, token or refusal from any process: an attempt fails as `unavailable`. The
//   frozen state is stored in the database and outlives every process. Until the rest is copied, writers wait for it, and the end
//   of the copying process, however it comes, lets them go on.
// - Rows are read in key order, so that a copy resumes after the last row that was written.
// - A read between two keys ends before the first row that cannot be read, whatever is behind it, and says so.
// - A target stores, in the transaction of the rows, their source database and the position in each table. It accepts
//   rows of that database only, into an empty database only, and no server opens it before the copy is finished.

import type { Tenant } from '../../model/principal.ts'
import type { IndexProgress, WordLimits } from './indexing.ts'

export type Cell = string | number | null | Uint8Array
export type CopyRow = readonly Cell[]

/** A column holds the same values in every database, whatever its native type. */
export type ColumnType = 'integer' | 'text' | 'bytes'

export interface CopyTable {
  readonly name: string
  readonly columns: Readonly<Record<string, ColumnType>>
  /** Unique, and never changed in a row; rows are read in this order. */
  readonly key: readonly string[]
  /** Most rows per read. */
  readonly page: number
  /** New rows are found by the ids of this sequence, their key, and not noted. */
  readonly follows?: 'events' | 'resends'
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

/** Which rows to read; without any of these, all. */
export interface ReadRange {
  /** The last id. */
  readonly upTo?: number | undefined
  /** Rows of one tenant; of tables that name only the company, all of the company. */
  readonly tenant?: Tenant
  /** Rows with these values in a column, which the key begins with. */
  readonly of?: { readonly column: string; readonly values: readonly number[] }
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

/** Progress of a target. */
export interface CopyState {
  readonly sourceUuid: string
  readonly finished: boolean
  /** The mark of the notes that this copy depends on; null: it has not begun. */
  readonly noting: string | null
  /** The key of the last row of each table that was copied in key order. */
  readonly positions: Readonly<Record<string, CopyRow | null>>
  /** Every table was read to its end: from here on, changes are carried out. */
  readonly isWhole: boolean
  /** How often changes were carried out. */
  readonly batches: number
}

/** A row that was inserted (`rows` 1), changed (0) or deleted (-1). */
export interface NotedChange {
  readonly id: number
  readonly table: string
  readonly key: CopyRow
  readonly rows: number
}

/** Rows to bring over again, by key; null: the row is gone. */
export interface ChangedRows {
  readonly table: CopyTable
  readonly keys: readonly CopyRow[]
  readonly rows: readonly (CopyRow | null)[]
}

/** Rows of a table, and how many of them are still noted: inserted less deleted. */
export interface RowCount {
  readonly rows: number
  readonly noted: number
}

/** Notes of a copy that runs, or was cut off. */
export interface Noting {
  readonly mark: string
  /** When its copy last gave a sign of life, in milliseconds. */
  readonly seenAt: number
}

/** Notes without a sign of life for this long belong to no copy any more. */
export const NOTING_STALE_MS = 300_000

/** One database, as either side of a copy. */
export interface CopySide {
  readonly tables: readonly CopyTable[]
  identity(): Promise<CopyIdentity>
  /** The rows after a key (null: from the first), in key order; empty at the end. */
  read(table: CopyTable, after: CopyRow | null, range?: ReadRange): Promise<CopyRow[]>
  /** The next rows of a stretch, at most a page. */
  readStretch(table: CopyTable, stretch: Stretch): Promise<StretchRows>
  /** The rows with these keys, in the order of the keys. */
  find(table: CopyTable, keys: readonly CopyRow[]): Promise<(CopyRow | null)[]>
  /** For progress: may be an estimate. */
  count(table: CopyTable): Promise<number>
  /** Exact, at one moment, up to an id; null if it would take too long. */
  countExactly(table: CopyTable, upTo?: number): Promise<RowCount | null>

  /** The ids up to which every row is committed. */
  watermark(): Promise<Readonly<Record<'events' | 'resends', number>>>
  /** Null if no changes are noted. */
  noting(): Promise<Noting | null>
  /** Notes changes from now on, and forgets earlier notes. Answers with their mark. */
  startNoting(): Promise<string>
  /** The sign of life of the copy. Refuses if these notes are not kept any more. */
  keepNoting(mark: string): Promise<void>
  stopNoting(): Promise<void>
  /** The oldest notes. */
  changes(limit: number): Promise<NotedChange[]>
  forgetChanges(ids: readonly number[]): Promise<void>
  /** Makes writers wait, copies the rest and freezes the database. Refuses if writers do not let go of the tables in a while. */
  freeze<T>(copyRest: () => Promise<T>): Promise<T>
  isFrozen(): Promise<boolean>
  /** Ends the freeze and the notes. */
  release(): Promise<void>

  /** The state of the copy into this database; null if it is no target. */
  state(): Promise<CopyState | null>
  /** Refuses a database that holds anything but a copy of this source, or that a server uses. */
  begin(sourceUuid: string): Promise<CopyState>
  /** Empties an unfinished copy, to begin again with these notes. */
  restart(source: CopyIdentity, mark: string): Promise<CopyState>
  /** Writes the rows after a key together with the new position. Refuses if another copy into this database is running. */
  write(sourceUuid: string, table: CopyTable, after: CopyRow | null, rows: readonly CopyRow[]): Promise<void>
  /**
   * Replaces rows, in one transaction, and notes for the index which events are gone. Answers how many rows more there are in
   * each table.
   */
  replace(sourceUuid: string, batch: number, changes: readonly ChangedRows[]): Promise<number[]>
  /** Every table was read to its end. */
  setWhole(sourceUuid: string): Promise<void>
  /** Indexes some of what is written. */
  index(limits: WordLimits): Promise<IndexProgress>
  /** Lets the index follow the events that are gone: one bounded step. True: call again. */
  followPurges(): Promise<boolean>
  /** Takes over the last ids of the source, and opens the database to servers. */
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

/** The columns of the key that differ among the rows of one tenant: comparing the others too would hide them from an index. */
export function ownKey({ key }: CopyTable, tenant: Tenant | undefined): string[] {
  const isFixed = (column: string) => tenant !== undefined && ['company_id', 'account_id'].includes(column)
  const own = key.filter((column) => !isFixed(column))
  return own.length > 0 ? own : [...key]
}

/** The key of a row. */
export function keyOf(table: CopyTable, row: CopyRow): CopyRow {
  const names = Object.keys(table.columns)
  return table.key.map((column) => row[names.indexOf(column)] ?? null)
}

/** The end of a stretch that ends with an id; null without one. */
export function upToId(id: number | undefined): Stretch['upTo'] {
  return id === undefined ? null : { key: [id], isInclusive: true }
}
