// For whoever looks into a SQLite file by hand: a message that has arrived has no row of its own until it is
// filed, and no row of its key until that is sorted in.

import type { DatabaseSync } from 'node:sqlite'
import { prepareFiling } from '../../src/store/sqlite/filing.ts'

export function fileAll(db: DatabaseSync): void {
  const filing = prepareFiling(db, null)
  while (filing.fileSome(1000).hasMore);
  while (filing.sortNow());
}
