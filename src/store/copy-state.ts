// State of a copy, as its target stores it, what its source notes, and whether a server may open the database.

import {
  type Cell,
  type CopyRow,
  type CopyState,
  type CopyTable,
  keyOf,
  type Noting,
  NOTING_STALE_MS,
} from './contract/copy.ts'
import { StoreRefused } from './contract/failure.ts'

/** Error text of the triggers of a frozen database, during a copy and after it. */
export const FROZEN =
  'the database is frozen by ./intray copy: use the copy, or unfreeze it with ./intray copy --release URL'

export const KEY_IN_USE = 'The database holds messages under its own dedupe key. Another key fits a new database only.'

/** Error text of the trigger of a sealed tenant. */
export const MOVED = 'the tenant has moved to another database'

/** Why one tenant cannot be moved. */
export const HAS_TENANT = 'The target has this tenant already: it has tokens there.'
export const OTHER_SOURCE =
  'The target has a part of this tenant from another database, whose move is unfinished. Run that ./intray copy --tenant again.'

/** Why a copy cannot go on. */
export const NOTING_LOST =
  'The source does not note changes for this copy any more: another copy of it has begun, or it was released. Run the copy again.'

/** Why no server may open this database; null if one may. */
export function servingProblem(state: CopyState | null, isFrozen: boolean): string | null {
  if (state && !state.finished) {
    return 'The database is the target of an unfinished copy. Run the same ./intray copy again to finish it.'
  }
  if (!isFrozen) return null
  return (
    'The database was copied to another one and is frozen. Use the copy, ' +
    'or unfreeze this one: ./intray copy --release <its URL>.'
  )
}

/** Of a target that holds nothing yet. */
export function newState(sourceUuid: string, noting: string | null): CopyState {
  return { sourceUuid, finished: false, noting, positions: {}, isWhole: false, batches: 0 }
}

/** The state after these rows are written. Throws a sentence if they do not continue from the stored position. */
export function stateAfter(
  state: CopyState | null,
  sourceUuid: string,
  table: CopyTable,
  after: CopyRow | null,
  rows: readonly CopyRow[],
): CopyState {
  const found = requireOwn(state, sourceUuid)
  if (encodeKey(found.positions[table.name] ?? null) !== encodeKey(after)) refuse()
  const last = rows.at(-1)
  return { ...found, positions: { ...found.positions, ...(last && { [table.name]: keyOf(table, last) }) } }
}

/** The state after the next batch of changes. Throws a sentence if it is not the next one. */
export function stateAfterBatch(state: CopyState | null, sourceUuid: string, batch: number): CopyState {
  const found = requireOwn(state, sourceUuid)
  if (found.batches !== batch) refuse()
  return { ...found, batches: batch + 1 }
}

/** Throws a sentence if this is not the state of an unfinished copy of that source. */
export function requireOwn(state: CopyState | null, sourceUuid: string): CopyState {
  if (state?.sourceUuid !== sourceUuid || state.finished) refuse()
  return state
}

function refuse(): never {
  throw new StoreRefused('Another copy into this database is running. Wait until it ends, or stop it.')
}

/** Encodes the state for the `meta` table. */
export function encodeState(state: CopyState): string {
  const encoded = Object.entries(state.positions).map(([table, key]) => [table, key?.map(encodeCell) ?? null])
  return JSON.stringify({ ...state, positions: Object.fromEntries(encoded) })
}

const encodeKey = (key: CopyRow | null): string => JSON.stringify(key?.map(encodeCell) ?? null)

/** A key as the triggers note it: bytes in hexadecimal digits. */
export function notedKey(table: CopyTable, text: string): CopyRow {
  const cells = JSON.parse(text) as (string | number)[]
  return cells.map((cell, n) => (table.columns[table.key[n]!] === 'bytes' ? Buffer.from(String(cell), 'hex') : cell))
}

/** Notes that no copy needs any more. */
export function isStale({ seenAt }: Noting, now: number): boolean {
  return now - seenAt > NOTING_STALE_MS
}

export function decodeState(text: string): CopyState {
  return JSON.parse(text, (_, value: { hex?: unknown } | null) =>
    typeof value?.hex === 'string' ? Buffer.from(value.hex, 'hex') : value,
  ) as CopyState
}

function encodeCell(cell: Cell): unknown {
  return cell instanceof Uint8Array ? { hex: Buffer.from(cell).toString('hex') } : cell
}
