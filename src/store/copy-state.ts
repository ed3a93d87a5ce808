// How far a copy is, as its target keeps it, and what that means for whoever opens the database.

import { type Cell, type CopyRow, type CopyState, type CopyTable, keyOf } from './contract/copy.ts'

/** Why no server may open a database like this; null if nothing speaks against it. */
export function servingProblem(state: CopyState | null, isFrozen: boolean): string | null {
  if (state && !state.finished) {
    return 'The database is the target of an unfinished copy. ' + 'Run the same ./intray copy again to finish it.'
  }
  if (!isFrozen) return null
  return (
    'The database was copied to another one and is frozen. Use the copy, ' +
    'or unfreeze this one: ./intray copy --release <its URL>.'
  )
}

/** The state after these rows were written. Throws a sentence if they do not follow on what is there. */
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

/** As text, for the state that a target keeps. */
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
