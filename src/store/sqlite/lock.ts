// Locks between processes: one server per SQLite database, and one restore. The owner holds an exclusive transaction on a small lock
// database while it lives; the system frees it when the process dies, in whatever way. Other commands need no lock.
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

export interface Lock {
  release(): void
}

export function lockPath(databasePath: string): string {
  return `${databasePath.replace(/\.db$/, '')}.lock.db`
}

export function acquireServerLock(databasePath: string): Lock {
  const refusal = `Another Intray server is running on ${databasePath}. Stop it first, or set INTRAY_DATABASE_URL to another database.`
  return acquire(lockPath(databasePath), { timeoutMs: ACQUIRE_TIMEOUT_MS, heldIf: [SQLITE.BUSY], refusal })
}

export function restoreLockPath(databasePath: string): string {
  return `${databasePath.replace(/\.db$/, '')}.restore.db`
}

/** One restore to a path at a time: they write the same `.part`. Its owner removes the file before it releases the lock. */
export function acquireRestoreLock(databasePath: string): Lock {
  const refusal = `Another restore to ${databasePath} is running. Wait until it has ended.`
  // SQLite reports a file that was removed meanwhile as an I/O error.
  return acquire(restoreLockPath(databasePath), { timeoutMs: 0, heldIf: [SQLITE.BUSY, SQLITE.IOERR], refusal })
}

interface Acquisition {
  readonly timeoutMs: number
  /** The codes of SQLite that mean that another process has the lock. */
  readonly heldIf: readonly number[]
  readonly refusal: string
}

function acquire(path: string, { timeoutMs, heldIf, refusal }: Acquisition): Lock {
  const db = new DatabaseSync(path, { timeout: timeoutMs })
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db.close()
    if (!heldIf.includes(sqliteCode(error) ?? 0)) throw error
    throw new StoreRefused(refusal)
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
