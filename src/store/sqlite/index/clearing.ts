// Empties the derived tables on SQLite in bounded steps: the first half of a rebuild.

import type { DatabaseSync } from 'node:sqlite'

const CLEAR_WORDS = "INSERT INTO event_words (event_words) VALUES ('delete-all')"
const DERIVED_TABLES = {
  event_index: 'company_id, account_id, event_id',
  conversations: 'company_id, account_id, channel_key',
  repeats: 'company_id, event_id',
  unreadable: 'first_id',
  traffic: 'company_id, account_id, span, at, key_id',
} as const

/** One bounded step. When nothing is left, indexing can start again. */
export function clearSome(db: DatabaseSync, maxRows: number): void {
  // Drops all pages without reading them, whatever their number; later steps find the table empty.
  db.exec(CLEAR_WORDS)
  let cleared = 0
  for (const [table, key] of Object.entries(DERIVED_TABLES)) {
    const remaining = maxRows - cleared
    if (remaining === 0) return
    const { changes } = db
      .prepare(`DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} LIMIT ? + 0)`)
      .run(remaining)
    cleared += Number(changes)
  }
  if (cleared < maxRows) db.exec('UPDATE index_cursors SET clearing = 0')
}
