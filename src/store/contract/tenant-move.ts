// Moving one tenant into a database that has others.
//
//   source: closed ─► its rows, with ids of the target ─► target: tokens, and with them the tenant
//
// Promises
// - A closed tenant gets no new event, from any process, and its tokens are answered `tenant_moved`, once the generation of tokens that
//   `close` answers with is in effect.
// - The target gives out ids in the order of the old ones and as an append does, so that no reader skips one. It keeps which old id
//   became which until the move is finished: an interrupted move goes on with the same ids.
// - The tenant's tokens come last: until then nobody reads or writes it in the target.
// - No old id of the tenant is taken for an id of the target: its cursors below the first new one are refused.

import type { Tenant } from '../../model/principal.ts'
import type { CopyRow, CopySide, CopyTable } from './copy.ts'

/** Old id → new id. */
export type MovedIds = Map<number, number>

export interface TenantMove {
  /** Refuses a tenant without tokens. `address`: where it is from now on; null: not told. */
  close(tenant: Tenant, address: string | null): Promise<void>
  reopen(tenant: Tenant): Promise<void>
  /** Its tokens are answered `tenant_moved`. */
  isClosed(tenant: Tenant): Promise<boolean>

  /**
   * Refuses a target that has the tenant, or another move. New ids begin above `lastId`. Answers with the ids that this move has given out
   * before, by table.
   */
  begin(tenant: Tenant, sourceUuid: string, lastId: number): Promise<ReadonlyMap<string, MovedIds>>
  /** Draws as many ids as there are old ones, and inserts the rows that `rowsOf` makes of them, in one transaction. */
  insertNumbered(
    table: CopyTable,
    oldIds: readonly number[],
    rowsOf: (ids: readonly number[]) => readonly CopyRow[],
  ): Promise<readonly number[]>
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

/** A move into a database, as it is stored there until it is finished. */
export interface MoveState extends Tenant {
  readonly sourceUuid: string
  /** The tenant's ids are above this one. */
  readonly afterId: number
}
