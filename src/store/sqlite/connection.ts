// Opens connections to the SQLite file: sets the pragmas that durability depends on at every open, and reads them back.
//
// The file does not store synchronous=FULL, and a build may default to NORMAL, which loses acknowledged commits in a
// power cut. So it is set each time and read back, and any other value refuses to start.

import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { DatabaseDamaged, DatabaseMissing, StoreFailure, StoreRefused } from '../contract/failure.ts'
import { FROZEN } from '../copy-state.ts'

/** Wait for a lock that another process (a command beside the server) holds. */
const BUSY_TIMEOUT_MS = 5000

/** Versions before this one can corrupt a WAL database when two connections write and checkpoint at once. */
const OLDEST_SAFE_SQLITE = [3, 51, 3] as const

/**
 * 4 MB. After each commit that split a page, SQLite walks its whole page cache (the split borrows the page number of
 * the lock page, past the end of the file, and the commit drops pages past the end): with 64 MB that took 200 µs a
 * commit. A page that is not in this cache is in the system's, 2 µs away.
 */
const CACHE_KIB = 4 * 1024

/**
 * Pages of the journal. Each dedupe key touches a page of its own, which goes to the WAL whole: with half of SQLite's 4096 bytes a
 * commit of 48 messages took three quarters of the time. A file keeps the size it was created with.
 */
export const JOURNAL_PAGE_BYTES = 2048

/** 32 MB of WAL before a checkpoint: pages that many commits touch are written back once. */
export const CHECKPOINT_PAGES = { journal: 16_000, index: 8000 } as const

/** `indexer` writes derived data: a power cut may lose its last commits, and it derives them again. */
export type ConnectionRole = 'writer' | 'reader' | 'tool' | 'indexer'

/** A database is a file here, and opening one creates it. */
export function requireFile(path: string): void {
  if (existsSync(path)) return
  throw new DatabaseMissing(
    `There is no database at ${path}. Check its URL; a relative path begins in the folder that the command is started in.`,
  )
}

export function openConnection(path: string, role: ConnectionRole): DatabaseSync {
  try {
    if (role !== 'reader') mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const db = new DatabaseSync(path, { readOnly: role === 'reader', timeout: BUSY_TIMEOUT_MS })
    requireSafeVersion(db)
    if (role === 'writer' || role === 'tool') db.exec(`PRAGMA page_size = ${JOURNAL_PAGE_BYTES}`)
    if (role !== 'reader') requireWal(db)
    if (role === 'indexer') db.exec('PRAGMA synchronous = NORMAL')
    else if (role !== 'reader') makeDurable(db)
    // Deleted content is overwritten, in the pages that stay in the file as well: what is erased leaves the files.
    if (role !== 'reader') db.exec('PRAGMA secure_delete = ON')
    db.exec(`PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;
      PRAGMA cache_size = ${role === 'writer' ? -CACHE_KIB : -8192};
      PRAGMA wal_autocheckpoint = ${checkpointPages(role)};
      PRAGMA journal_size_limit = 67108864`)
    return db
  } catch (error) {
    throw refusal(path, error)
  }
}

/** Only the server checkpoints; a command does where no server runs. */
function checkpointPages(role: ConnectionRole): number {
  if (role === 'writer') return CHECKPOINT_PAGES.journal
  return role === 'indexer' ? CHECKPOINT_PAGES.index : 0
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

/**
 * Runs `work` in one transaction. BEGIN IMMEDIATE, since a deferred transaction that starts to write fails at once when
 * busy.
 */
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

/** How long a truncation waits for readers of an old state: everything that writes waits with it. */
const TRUNCATE_WAIT_MS = 50

/** Empties the WAL, which keeps the pages as they were. False while somebody reads an old state of the file. */
export function truncateWal(db: DatabaseSync): boolean {
  db.exec(`PRAGMA busy_timeout = ${TRUNCATE_WAIT_MS}`)
  try {
    return db.prepare('PRAGMA main.wal_checkpoint(TRUNCATE)').get()?.busy === 0
  } catch (error) {
    if (sqliteCode(error) === SQLITE.BUSY || sqliteCode(error) === SQLITE.LOCKED) return false
    throw error
  } finally {
    db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  }
}

/** Pages in the WAL that a checkpoint has yet to write into the database. NOOP: counts them and does nothing else. */
export function unwrittenPages(db: DatabaseSync): number {
  const { log, checkpointed } = db.prepare('PRAGMA main.wal_checkpoint(NOOP)').get() ?? {}
  return Number(log) - Number(checkpointed)
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

/** Switching a new file to WAL does not wait for another process that does the same, so this retries. */
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
  const parts = version.split('.').map(Number)
  const at = OLDEST_SAFE_SQLITE.findIndex((part, n) => parts[n] !== part)
  if (at === -1 || parts[at]! > OLDEST_SAFE_SQLITE[at]!) return
  throw new StoreRefused(
    `SQLite ${version} can corrupt a WAL database; ${OLDEST_SAFE_SQLITE.join('.')} or newer is needed.`,
  )
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

/** Extended codes: a page could not be read, or not to its end. */
const UNREADABLE_PAGE = [SQLITE.IOERR | (1 << 8), SQLITE.IOERR | (2 << 8)]

/**
 * Classifies a failed operation. A damaged page fails what touches it: SQLite refuses to commit the transaction, the next one
 * works, and a restart would meet the same page. After an I/O error the content of the disk is unknown, and a later sync may falsely
 * succeed: fatal. A full disk is not fatal: SQLite rolled back, and the next try may succeed.
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
    case SQLITE.CORRUPT:
    case SQLITE.NOTADB:
      return new StoreFailure('damaged', `a damaged page was met: ${message}`, { cause: error })
    case SQLITE.IOERR:
    case SQLITE.READONLY:
    case SQLITE.CANTOPEN:
      return new StoreFailure('fatal', message, { cause: error })
    default:
      return new StoreFailure('rejected', message, { cause: error })
  }
}

/** Classifies a failed read: a page that the disk does not give back is damaged too. */
export function readFailure(error: unknown): StoreFailure {
  if (!UNREADABLE_PAGE.includes((error as { errcode?: number } | null)?.errcode ?? 0)) return storeFailure(error)
  return new StoreFailure('damaged', `a page could not be read: ${(error as Error).message}`, { cause: error })
}

/** Whether a read failed because of what it read: a damaged page, or a number that no column of ours holds. */
export function isDamage(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'ERR_OUT_OF_RANGE' || readFailure(error).kind === 'damaged'
}

/** The result of a read; undefined if a damaged page hides it. Only outside of a transaction that writes. */
export function unlessDamaged<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (!isDamage(error)) throw error
    return undefined
  }
}

/** Why a database cannot be opened, as a sentence for the operator. */
export function refusal(path: string, error: unknown): Error {
  if (error instanceof StoreRefused) return error
  const code = (error as { code?: string }).code
  const sqlite = sqliteCode(error)
  // On a read-only disk mkdir reports ENOENT if the parent is missing too.
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
    return new DatabaseDamaged(`${path} is not a SQLite database, or is damaged. Restore it from a backup.`, {
      cause: error,
    })
  }
  return new StoreRefused(`The database ${path} cannot be opened: ${error instanceof Error ? error.message : error}`, {
    cause: error,
  })
}
