// Self-checks on SQLite.

import type { DatabaseSync } from 'node:sqlite'
import type { Diagnosis } from '../../contract/diagnosis.ts'

/** Checks all pages and their order, but not that indexes match tables: half the time of the full check. */
const CHECK = 'PRAGMA quick_check(20)'
const COUNT_UNINDEXED = 'SELECT count(*) AS count FROM event_index WHERE unindexed IS NOT NULL'

export function createDiagnosis(db: DatabaseSync): Diagnosis {
  return {
    structure: async () =>
      db
        .prepare(CHECK)
        .all()
        .map((row) => String(Object.values(row)[0]))
        .filter((line) => line !== 'ok'),
    blockingTransactions: async () => [],
    unindexed: async () => Number(db.prepare(COUNT_UNINDEXED).get()?.count),
  }
}
