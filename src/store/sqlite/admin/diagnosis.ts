// Self-checks on SQLite.

import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Diagnosis, OpenFile, StructureProblem, UnreadableIds } from '../../contract/diagnosis.ts'
import { isDamage } from '../connection.ts'
import { indexPath } from '../index/index-file.ts'

/** The names under which a reader has the files open. */
const PARTS = { journal: 'journal', index: 'main' } as const
const COUNT_UNINDEXED = 'SELECT count(*) AS count FROM event_index WHERE unindexed IS NOT NULL'
export const COUNT_UNREADABLE = 'SELECT coalesce(sum(last_id - first_id + 1), 0) AS count FROM unreadable'
const SELECT_UNREADABLE = 'SELECT first_id AS first, last_id AS last FROM unreadable ORDER BY first_id LIMIT 20'

export function createDiagnosis(db: DatabaseSync, path: string): Diagnosis {
  return {
    structure: async () => [...structureOf(db, 'journal', path), ...structureOf(db, 'index', indexPath(path))],
    blockingTransactions: async () => [],
    openFiles: async () => openFiles(path),
    unreadable: async () => ({
      ids: Number(db.prepare(COUNT_UNREADABLE).get()?.count),
      ranges: db.prepare(SELECT_UNREADABLE).all() as unknown as UnreadableIds['ranges'],
    }),
    unindexed: async () => Number(db.prepare(COUNT_UNINDEXED).get()?.count),
  }
}

/**
 * Checks all pages and their order, but not that indexes match tables: half the time of the full check. The check fails where
 * damage keeps it from going on, after what it found before.
 */
function structureOf(db: DatabaseSync, part: keyof typeof PARTS, file: string): StructureProblem[] {
  const lines: string[] = []
  try {
    for (const row of db.prepare(`PRAGMA ${PARTS[part]}.quick_check(20)`).iterate()) {
      lines.push(...String(Object.values(row)[0]).split('\n'))
    }
  } catch (error) {
    if (!isDamage(error)) throw error
    if (lines.length === 0) lines.push((error as Error).message)
  }
  return lines
    .filter((line) => line !== 'ok' && !line.startsWith('***'))
    .map((problem) => ({ part, file, table: tableOf(db, part, problem), problem }))
}

/** The check names a table by its first page: `Tree 12 page 45: …`. */
function tableOf(db: DatabaseSync, part: keyof typeof PARTS, problem: string): string | null {
  const [, root] = /^Tree (\d+) /.exec(problem) ?? []
  if (root === undefined) return null
  try {
    const found = db.prepare(`SELECT name FROM ${PARTS[part]}.sqlite_schema WHERE rootpage = ?`).get(Number(root))
    return found ? String(found.name) : null
  } catch {
    return null
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
