// Server lock: one server per SQLite database. The server holds an exclusive transaction on a small lock database while
// it lives; the system frees it when the process dies, in whatever way. Commands need no lock.
//
// Neither this file nor the database may be opened through `fs` in the same process: closing such a handle silently
// drops SQLite's POSIX locks.

import { DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../contract/failure.ts'
import { SQLITE, sqliteCode } from './connection.ts'

/** Longer than a command needs to check whether a server is running. */
const ACQUIRE_TIMEOUT_MS = 1000

/** The locks of this process. Without a reference, the garbage collector would close the connection and free its lock. */
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
