// Changes of the table of search words by text, beside the inserts of the indexer.

import type { DatabaseSync } from 'node:sqlite'

/**
 * FTS5 leaves an internal row id as the connection's last one, which a JavaScript number cannot hold: every statement run
 * afterwards would fail. An insert replaces it.
 */
export function changeWords(db: DatabaseSync, sql: string): void {
  db.exec(`${sql}; CREATE TEMP TABLE IF NOT EXISTS last_row_id (id INTEGER PRIMARY KEY);
      INSERT OR REPLACE INTO temp.last_row_id VALUES (1)`)
}
