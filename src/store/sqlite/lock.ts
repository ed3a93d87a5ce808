// One server for one SQLite database. The server holds an exclusive transaction on a small database of its own for as
// long as it lives; the system frees it when the process dies, however it dies. Commands need no lock.
//
// Neither this file nor the database may be opened through `fs` in the same process: closing such a handle would drop
// SQLite's POSIX locks without a word.

import { DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../contract/failure.ts'
import { SQLITE, sqliteCode } from './connection.ts'

/** Long enough to outlast a command that looks whether a server is there. */
const ACQUIRE_TIMEOUT_MS = 1000

/** The locks of this process. A connection that nothing refers to is closed by the garbage collector, and its lock is gone. */
const held = new Set<DatabaseSync>()

export interface ServerLock {
  release(): void
}

export function lockPath(databasePath: string): string {
  return `${databasePath.replace(/\.db$/, '')}.lock.db`
}

export function acquireServerLock(databasePath: string): ServerLock {
  const db = new DatabaseSync(lockPath(databasePath), { timeout: ACQUIRE_TIMEOUT_MS })
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (sqliteCode(error) !== SQLITE.BUSY) throw error
    throw new StoreRefused(
      `Another Intray server is running on ${databasePath}. Stop it first, or set INTRAY_DATABASE_URL to another database.`,
    )
  }
  held.add(db)
  return {
    release: () => {
      if (held.delete(db)) db.close()
    },
  }
}

/** True while a server holds the database. */
export function isServerRunning(databasePath: string): boolean {
  const db = new DatabaseSync(lockPath(databasePath), { timeout: 0 })
  try {
    db.exec('SELECT count(*) FROM sqlite_master')
    return false
  } catch (error) {
    if (sqliteCode(error) === SQLITE.BUSY) return true
    throw error
  } finally {
    db.close()
  }
}
