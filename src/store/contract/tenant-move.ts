// Moving one tenant into a database that has others.
//
//   source: surveyed ─► closed, sealed ─► its rows, with ids of the target ─► target: tokens, and with them the tenant
//
// Promises
// - The ids of the tenant's rows are looked for before it is closed: it stays closed for as long as its own rows take.
// - The tokens of a closed tenant are answered `tenant_moved` once the newest generation of tokens is in effect. A sealed one gets no
//   new event from any process.
// - The target gives out ids in the order of the old ones and as an append does, so that no reader skips one. It stores which old id
//   became which until the move is finished: an interrupted move goes on with the same ids. Moves of several tenants are independent.
// - The tenant's tokens come last: until then nobody reads or writes it in the target.
// - No old id of the tenant is taken for an id of the target: its cursors below the first new one are refused.

import type { Tenant } from '../../model/principal.ts'
import type { CopyRow, CopySequence, CopySide, CopyTable } from './copy.ts'

/** Old id → new id. */
export type MovedIds = ReadonlyMap<number, number>

/** Tables whose rows are found by looking through all rows: no index of the journal begins with the tenant. */
export type SurveyedTable = Exclude<CopySequence, 'refusals'>

/** Ids of the tenant among the next rows. */
export interface Survey {
  readonly ids: readonly number[]
  /** The last row that was looked at; null: there are no more. */
  readonly last: number | null
}

export interface TenantMove {
  /** `closed`: its tokens are answered `tenant_moved`. Null: there is no such tenant. */
  state(tenant: Tenant): Promise<'open' | 'closed' | null>
  /** `address`: where it is from now on; null: not told. */
  close(tenant: Tenant, address: string | null): Promise<void>
  seal(tenant: Tenant): Promise<void>
  reopen(tenant: Tenant): Promise<void>
  /** Looks at a bounded number of rows after an id. */
  survey(tenant: Tenant, table: SurveyedTable, after: number, upTo: number): Promise<Survey>

  /**
   * Begins a move into this database, or goes on with one. Refuses if the tenant is here, or was moved here from another source and not
   * finished. Answers the id above which the tenant's ids are; `lastId`, and what the source gives out meanwhile, is below it.
   */
  begin(tenant: Tenant, sourceUuid: string, lastId: number): Promise<number>
  /** Stores old ids that have no new ones yet. */
  noteIds(tenant: Tenant, table: SurveyedTable, ids: readonly number[]): Promise<void>
  /** The highest one; 0 if there is none. */
  lastNoted(tenant: Tenant, table: SurveyedTable): Promise<number>
  /** Old ids in their order. `gone`: of events without a row, which keys and lanes name. */
  noted(tenant: Tenant, table: SurveyedTable | 'gone', after: number, limit: number): Promise<number[]>
  /** The new ids of those that have one. Of events, also of those that are gone. */
  newIds(tenant: Tenant, table: string, oldIds: readonly number[]): Promise<MovedIds>
  /** The new id of the tenant's newest event up to an old id; 0 if there is none. */
  newestUpTo(tenant: Tenant, oldId: number): Promise<number>
  /** Draws as many ids as there are old ones, and inserts the rows that `rowsOf` makes of them, in one transaction. */
  insertNumbered(
    tenant: Tenant,
    table: CopyTable,
    oldIds: readonly number[],
    rowsOf: (ids: MovedIds) => readonly CopyRow[],
  ): Promise<void>
  /** Draws ids for events that are gone. */
  numberGone(tenant: Tenant, oldIds: readonly number[]): Promise<void>
  /** Inserts rows, or replaces those with the same key. */
  put(table: CopyTable, rows: readonly CopyRow[]): Promise<void>
  /** Lets the tenant in, with these tokens. */
  finish(tenant: Tenant, tokens: readonly CopyRow[]): Promise<void>
}

/** One database, as either side of a move. */
export interface MoveSide extends CopySide {
  readonly tenants: TenantMove
  /** Gives a database without messages the dedupe key of another one. */
  adoptKey(dedupeKey: Uint8Array): Promise<void>
}

/** How many rows a survey looks at in one statement. */
export const SURVEY_ROWS = 20_000

/** Ids that the source may give out while a tenant is moved, which its followers may have seen. */
const MARGIN = 1_000_000_000

/** Above which id a moved tenant's ids begin. `ownLast`: the last id of the target. */
export function moveStart(ownLast: number, sourceLast: number): number {
  return Math.max(ownLast, sourceLast + MARGIN)
}
