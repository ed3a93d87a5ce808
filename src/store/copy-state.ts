// State of a copy, as its target stores it, and whether a server may open the database.

import { type Cell, type CopyRow, type CopyState, type CopyTable, keyOf } from './contract/copy.ts'

/** Error text of the triggers of a frozen database, during a copy and after it. */
export const FROZEN =
  'the database is frozen by ./intray copy: use the copy, or unfreeze it with ./intray copy --release URL'

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

/** The state after these rows are written. Throws a sentence if they do not continue from the stored position. */
export function stateAfter(
  state: CopyState | null,
  sourceUuid: string,
  table: CopyTable,
  after: CopyRow | null,
  rows: readonly CopyRow[],
): CopyState {
  const before = { sourceUuid, finished: false, positions: { [table.name]: after } }
  const found = { ...state, positions: { [table.name]: state?.positions[table.name] ?? null } } as typeof before
  if (encodeState(found) !== encodeState(before))
    throw new Error('Another copy into this database is running. Wait until it ends, or stop it.')
  const last = rows.at(-1)
  return { ...state!, positions: { ...state!.positions, ...(last && { [table.name]: keyOf(table, last) }) } }
}

/** Encodes the state for the `meta` table. */
export function encodeState({ sourceUuid, finished, positions }: CopyState): string {
  const encoded = Object.entries(positions).map(([table, key]) => [table, key?.map(encodeCell) ?? null])
  return JSON.stringify({ sourceUuid, finished, positions: Object.fromEntries(encoded) })
}

export function decodeState(text: string): CopyState {
  return JSON.parse(text, (_, value: { hex?: unknown } | null) =>
    typeof value?.hex === 'string' ? Buffer.from(value.hex, 'hex') : value,
  ) as CopyState
}

function encodeCell(cell: Cell): unknown {
  return cell instanceof Uint8Array ? { hex: Buffer.from(cell).toString('hex') } : cell
}
