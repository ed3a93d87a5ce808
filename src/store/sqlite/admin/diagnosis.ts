// Self-checks on SQLite.

import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Diagnosis, OpenFile } from '../../contract/diagnosis.ts'
import { indexPath } from '../index/index-file.ts'

/** Checks all pages and their order, but not that indexes match tables: half the time of the full check. */
const CHECK = 'PRAGMA quick_check(20)'
const COUNT_UNINDEXED = 'SELECT count(*) AS count FROM event_index WHERE unindexed IS NOT NULL'

export function createDiagnosis(db: DatabaseSync, path: string): Diagnosis {
  return {
    structure: async () =>
      db
        .prepare(CHECK)
        .all()
        .map((row) => String(Object.values(row)[0]))
        .filter((line) => line !== 'ok'),
    blockingTransactions: async () => [],
    openFiles: async () => openFiles(path),
    unindexed: async () => Number(db.prepare(COUNT_UNINDEXED).get()?.count),
  }
}

const OTHERS = 0o007

function openFiles(path: string): OpenFile[] {
  const files = [path, indexPath(path)].flatMap((file) => [file, `${file}-wal`, `${file}-shm`])
  return files.flatMap((file) => {
    const mode = (statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o777
    return (mode & OTHERS) === 0 ? [] : [{ path: file, mode }]
  })
}
