// Empties the derived tables on PostgreSQL in bounded steps: the first half of a rebuild.

import type { Connection } from '../connection/connection.ts'

export const DERIVED_TABLES = [
  'event_index',
  'event_words',
  'conversations',
  'repeats',
  'traffic',
  'unreadable',
] as const

/** One bounded step. True when nothing is left and indexing can start again. */
export async function clearSome(connection: Connection, maxRows: number): Promise<boolean> {
  let cleared = 0
  for (const table of DERIVED_TABLES) {
    const remaining = maxRows - cleared
    if (remaining === 0) return false
    cleared += await connection.execute(
      `DELETE FROM intray.${table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM intray.${table} LIMIT $1))`,
      [remaining],
    )
  }
  if (cleared === maxRows) return false
  await connection.query('UPDATE intray.index_cursors SET clearing = false')
  return true
}

/** Where a page of a derived table is damaged: without reading one. Always false: nothing is left. */
export async function clearAtOnce(connection: Connection): Promise<false> {
  await connection.script(`TRUNCATE ${DERIVED_TABLES.map((table) => `intray.${table}`).join(', ')}`)
  await connection.query('UPDATE intray.index_cursors SET clearing = false')
  return false
}
