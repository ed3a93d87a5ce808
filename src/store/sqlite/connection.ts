// A connection to the SQLite file, with the settings that durability rests on set on every open and read back.
//
// synchronous=FULL is not remembered by the file, and a build may default to NORMAL, which loses acknowledged commits in
// a power cut. So it is set each time, read back, and anything but FULL refuses to start.

import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { StoreFailure, StoreRefused } from '../contract/failure.ts'

/** Waited for when another process (a command beside the server) is writing. */
const BUSY_TIMEOUT_MS = 5000

/** Versions before this one can corrupt a WAL database when two connections write and checkpoint at once. */
const OLDEST_SAFE_SQLITE = '3.51.3'

/**
 * 4 MB. SQLite goes through its whole page cache at the end of each commit that split a page (a split borrows the number
 * of the lock page, past the end of the file, and the commit then drops what lies past the end): with 64 MB that alone
 * was 200 µs a commit. A page that is not in this cache is still in the system's, 2 µs away.
 */
const CACHE_KIB = 4 * 1024

/** 32 MB of WAL before a checkpoint: pages that many commits touch are written back once. */
export const CHECKPOINT_PAGES = 8000

/** What the triggers of a frozen database say. */
export const FROZEN = 'the database is frozen: it is being copied to another one'

/** `indexer` writes what can be derived again: in a power cut its last commits may be lost, and it makes them anew. */
export type ConnectionRole = 'writer' | 'reader' | 'tool' | 'indexer'

export function openConnection(path: string, role: ConnectionRole): DatabaseSync {
  try {
    if (role !== 'reader') mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const db = new DatabaseSync(path, { readOnly: role === 'reader', timeout: BUSY_TIMEOUT_MS })
    requireSafeVersion(db)
    if (role !== 'reader') requireWal(db)
    if (role === 'indexer') db.exec('PRAGMA synchronous = NORMAL')
    else if (role !== 'reader') makeDurable(db)
    db.exec(`PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;
      PRAGMA cache_size = ${role === 'writer' ? -CACHE_KIB : -8192};
      PRAGMA wal_autocheckpoint = ${role === 'writer' || role === 'indexer' ? CHECKPOINT_PAGES : 0};
      PRAGMA journal_size_limit = 67108864`)
    return db
  } catch (error) {
    throw refusal(path, error)
  }
}

/** What PRAGMA synchronous says: 2 is FULL. */
export function readSynchronous(db: DatabaseSync): number {
  return Number(Object.values(db.prepare('PRAGMA synchronous').get() ?? {})[0])
}

export function sqliteVersion(db: DatabaseSync): string {
  return String(db.prepare('SELECT sqlite_version() AS version').get()?.version)
}

interface TransactionStatements {
  readonly begin: StatementSync
  readonly commit: StatementSync
}

const transactions = new WeakMap<DatabaseSync, TransactionStatements>()

function transactionOf(db: DatabaseSync): TransactionStatements {
  const known = transactions.get(db)
  if (known) return known
  const prepared = { begin: db.prepare('BEGIN IMMEDIATE'), commit: db.prepare('COMMIT') }
  transactions.set(db, prepared)
  return prepared
}

/** Runs `work` in one transaction. BEGIN IMMEDIATE: a deferred one that turns to writing fails at once when busy. */
export function inTransaction<T>(db: DatabaseSync, work: () => T): T {
  const { begin, commit } = transactionOf(db)
  begin.run()
  try {
    const result = work()
    commit.run()
    return result
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function requireWal(db: DatabaseSync): void {
  const mode = turnOnWal(db)
  if (mode !== 'wal')
    throw new StoreRefused(
      `The file system does not support SQLite's WAL mode (got ${mode}). Put the database on a local disk.`,
    )
}

function makeDurable(db: DatabaseSync): void {
  db.exec('PRAGMA synchronous = FULL')
  const synchronous = readSynchronous(db)
  if (synchronous !== 2) throw new StoreRefused(`SQLite answers synchronous=${synchronous} instead of 2 (FULL).`)
}

/** Turning a new file to WAL does not wait for another process that is doing the same: so we do. */
function turnOnWal(db: DatabaseSync): unknown {
  const deadline = Date.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      return db.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode
    } catch (error) {
      if (sqliteCode(error) !== SQLITE.BUSY || Date.now() > deadline) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

function requireSafeVersion(db: DatabaseSync): void {
  const version = sqliteVersion(db)
  if (version.localeCompare(OLDEST_SAFE_SQLITE, 'en', { numeric: true }) < 0) {
    throw new StoreRefused(`SQLite ${version} can corrupt a WAL database; ${OLDEST_SAFE_SQLITE} or newer is needed.`)
  }
}

/** The primary result code of a SQLite error, or null for any other error. */
export function sqliteCode(error: unknown): number | null {
  const errcode = (error as { errcode?: unknown } | null)?.errcode
  return typeof errcode === 'number' ? errcode & 0xff : null
}

export const SQLITE = {
  PERM: 3,
  BUSY: 5,
  LOCKED: 6,
  NOMEM: 7,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  NOTADB: 26,
}

/**
 * What a failed operation means. After an I/O error nobody knows what is on disk, and a later sync may falsely
 * succeed: that is fatal. A full disk is not: SQLite rolled back, and the next try may find room.
 */
export function storeFailure(error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error
  const message = error instanceof Error ? error.message : String(error)
  if (message === FROZEN) return new StoreFailure('unavailable', message, { cause: error })
  switch (sqliteCode(error)) {
    case SQLITE.NOMEM:
      return new StoreFailure('unavailable', 'out of memory', { cause: error })
    case SQLITE.FULL:
      return new StoreFailure('unavailable', 'the disk is full', { cause: error })
    case SQLITE.BUSY:
    case SQLITE.LOCKED:
      return new StoreFailure('unavailable', 'the database is locked by another process', { cause: error })
    case SQLITE.IOERR:
    case SQLITE.CORRUPT:
    case SQLITE.NOTADB:
    case SQLITE.READONLY:
    case SQLITE.CANTOPEN:
      return new StoreFailure('fatal', message, { cause: error })
    default:
      return new StoreFailure('rejected', message, { cause: error })
  }
}

/** Why a database cannot be opened, in a sentence. */
export function refusal(path: string, error: unknown): Error {
  if (error instanceof StoreRefused) return error
  const code = (error as { code?: string }).code
  const sqlite = sqliteCode(error)
  // Making a folder on a read-only disk is reported as ENOENT when its parent is missing too.
  if (
    code === 'EROFS' ||
    code === 'EACCES' ||
    code === 'ENOENT' ||
    sqlite === SQLITE.READONLY ||
    sqlite === SQLITE.PERM
  ) {
    return new StoreRefused(
      `The database ${path} cannot be written: its folder is read-only or belongs to another user. ` +
        'Make the folder writable for this user, or set INTRAY_DATABASE_URL to another path.',
      { cause: error },
    )
  }
  if (code === 'EEXIST' || code === 'ENOTDIR') {
    return new StoreRefused(
      `The database ${path} cannot be opened: there is a file in place of its folder. Set INTRAY_DATABASE_URL to another path.`,
      { cause: error },
    )
  }
  if (code === 'ENOSPC' || sqlite === SQLITE.FULL) {
    return new StoreRefused(
      `The database ${path} cannot be opened: the disk is full. Free some space and start again.`,
      { cause: error },
    )
  }
  if (sqlite === SQLITE.CANTOPEN) {
    return new StoreRefused(
      `The database ${path} cannot be opened. Check that the folder exists and that this user may write there.`,
      { cause: error },
    )
  }
  if (sqlite === SQLITE.BUSY) {
    return new StoreRefused(`The database ${path} is locked by another program. Stop that program and start again.`, {
      cause: error,
    })
  }
  if (sqlite === SQLITE.NOTADB || sqlite === SQLITE.CORRUPT) {
    return new StoreRefused(`${path} is not a SQLite database, or is damaged. Restore it from a backup.`, {
      cause: error,
    })
  }
  return new StoreRefused(`The database ${path} cannot be opened: ${error instanceof Error ? error.message : error}`, {
    cause: error,
  })
}
