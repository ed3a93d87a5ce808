// The index file, beside the journal's: `intray.index.db`. Two files have two writers, so intake and indexing do not
// block each other. It can be deleted while no server runs: it is rebuilt.
//
// A reader opens this file and attaches the journal, in that order: SQLite takes snapshots in the order of the files,
// so every event in the index is in the journal's snapshot. In the other order an event could be missing.

import { hash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { StoreFailure, StoreRefused } from '../../contract/failure.ts'
import { erasurePositions, lastErasure } from '../admin/erasures.ts'
import { inTransaction, isDamage, openConnection, SQLITE, sqliteCode } from '../connection.ts'
import { readSequence } from '../journal/sequence.ts'
import { readMeta } from '../schema.ts'
import { purgePosition } from './index-purges.ts'
import { readCursors, startAgain } from './indexing.ts'

const SCHEMA = readFileSync(new URL('./index.sql', import.meta.url), 'utf8')
const SCHEMA_DIGEST = hash('sha256', SCHEMA)

const SELECT_ORIGIN = 'SELECT schema, database_uuid, last_id, last_request FROM index_origin'
const INSERT_ORIGIN = `INSERT INTO index_origin (only, schema, database_uuid)
  SELECT 1, ?, CAST(value AS TEXT) FROM meta WHERE key = 'database_uuid'`
const SELECT_LAST_PURGE = "SELECT seq FROM journal.sqlite_sequence WHERE name = 'purges'"
const SELECT_REQUEST = 'SELECT request_id FROM events WHERE id = ?'

export function indexPath(databasePath: string): string {
  return `${databasePath.replace(/\.db$/, '')}.index.db`
}

/** For the indexer: writes the index, reads the journal. */
export function openIndexWriter(path: string): DatabaseSync {
  const db = openConnection(indexPath(path), 'indexer')
  attach(db, path, 'journal')
  return db
}

/** For readers: reads both files. SQLite can open them only while another connection may write. */
export function openReader(path: string): DatabaseSync {
  const db = openConnection(indexPath(path), 'reader')
  attach(db, path, 'journal')
  return db
}

/** For the journal's writer, whose claims read the index. */
export function attachIndex(db: DatabaseSync, path: string): void {
  attach(db, indexPath(path), 'derived')
}

/** Read-only, so that a write transaction does not lock the other file. */
function attach(db: DatabaseSync, path: string, name: string): void {
  const url = pathToFileURL(resolve(path)).href.replaceAll("'", '%27')
  db.exec(`ATTACH '${url}?mode=ro' AS ${name}; PRAGMA ${name}.cache_size = -4096`)
}

/** Whether the file must be recreated before this code can use it. */
export function needsIndexFile(path: string): boolean {
  const db = openConnection(indexPath(path), 'indexer')
  try {
    return !isOfThisSchema(db)
  } finally {
    db.close()
  }
}

/**
 * Creates the file if it is missing, damaged or of another version, and starts indexing again if it belongs to another
 * journal. The journal must be open for writing somewhere.
 */
export function prepareIndexFile(path: string): void {
  const db = openOrReplace(path)
  try {
    prepareTables(db)
  } catch (error) {
    if (!isDamage(error) || !repairIndex(db)) throw error
    prepareTables(db)
  } finally {
    db.close()
  }
}

function prepareTables(db: DatabaseSync): void {
  if (isOfThisSchema(db) && isOfJournal(db)) return
  inTransaction(db, () => {
    if (!isOfThisSchema(db)) makeTables(db)
    else if (!isOfJournal(db)) startAgain(db)
  })
}

/**
 * Refuses a journal that is missing or empty while its index is there: it was lost, since a new one is written before its index.
 * To start as a new database would give out ids and accept references a second time.
 */
export function refuseLostJournal(path: string): void {
  const index = indexPath(path)
  if (sizeOf(index) === 0 || sizeOf(path) > 0) return
  const what = existsSync(path) ? 'is empty' : 'is missing'
  throw new StoreRefused(
    `The database ${path} ${what}, but its index ${index} is there: messages were lost. Restore ${path} from a backup. ` +
      `To start with a new, empty database instead, delete ${index}.`,
  )
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/**
 * Reads the whole file, and if a page is damaged, empties it in place, while others have it open: the following steps fill it again.
 * False if it is intact.
 */
export function repairIndex(db: DatabaseSync): boolean {
  if (isIntact(db)) return false
  try {
    emptyInPlace(db)
    return true
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StoreFailure(
      'fatal',
      `the index is damaged and cannot be emptied (${reason}); the next start rebuilds it`,
    )
  }
}

function isIntact(db: DatabaseSync): boolean {
  try {
    return Object.values(db.prepare('PRAGMA main.quick_check(1)').get() ?? {})[0] === 'ok'
  } catch (error) {
    if (!isDamage(error)) throw error
    return false
  }
}

/**
 * Forgets all tables without reading their pages, as SQLITE_DBCONFIG_RESET_DATABASE does, and makes new ones in the same
 * transaction: other connections never see a file without tables.
 */
function emptyInPlace(db: DatabaseSync): void {
  db.enableDefensive(false)
  try {
    inTransaction(db, () => {
      db.exec('PRAGMA writable_schema = ON; DELETE FROM main.sqlite_schema; PRAGMA writable_schema = RESET')
      db.exec(SCHEMA)
      db.prepare(INSERT_ORIGIN).run(SCHEMA_DIGEST)
    })
    // Gives back the pages of the forgotten tables, the damaged one among them.
    db.exec('VACUUM main')
  } finally {
    db.enableDefensive(true)
  }
}

/**
 * The indexer sets this mark before the server exits: the next start recreates the file instead of failing on the same
 * damage.
 */
export function markDamaged(path: string): void {
  writeFileSync(damageMark(path), '')
}

const damageMark = (path: string): string => `${indexPath(path)}-damaged`

/**
 * The WAL first: a new file must not find that of an old one. The mark last: the next start completes an interrupted
 * removal.
 */
function removeFile(path: string): void {
  for (const end of ['-wal', '-shm', '', '-damaged']) rmSync(indexPath(path) + end, { force: true })
}

function openOrReplace(path: string): DatabaseSync {
  if (existsSync(damageMark(path))) removeFile(path)
  try {
    const db = openIndexWriter(path)
    isOfThisSchema(db)
    return db
  } catch (error) {
    const code = sqliteCode(error) ?? sqliteCode((error as Error).cause)
    if (code !== SQLITE.NOTADB && code !== SQLITE.CORRUPT) throw error
    removeFile(path)
    return openIndexWriter(path)
  }
}

function isOfThisSchema(db: DatabaseSync): boolean {
  if (!db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'index_origin'").get()) return false
  return db.prepare(SELECT_ORIGIN).get()?.schema === SCHEMA_DIGEST
}

/** A journal restored from a backup ends before the last indexed event, or has another event under that id. */
function isOfJournal(db: DatabaseSync): boolean {
  const origin = db.prepare(SELECT_ORIGIN).get()!
  const lastId = origin.last_id as number
  const request = db.prepare(SELECT_REQUEST).get(lastId)?.request_id ?? origin.last_request
  const covered = readCursors(db)
  return (
    origin.database_uuid === Buffer.from(readMeta(db, 'database_uuid')).toString() &&
    request === origin.last_request &&
    Math.max(lastId, covered.events) <= readSequence(db, 'events') &&
    covered.resends <= readSequence(db, 'resends') &&
    erasurePositions(db).cleaned <= lastErasure(db) &&
    purgePosition(db) <= Number(db.prepare(SELECT_LAST_PURGE).get()?.seq ?? 0)
  )
}

/** FTS5's own tables are dropped with event_words. */
function makeTables(db: DatabaseSync): void {
  const made = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()
  const names = made.map(({ name }) => String(name)).filter((name) => !/^(sqlite_|event_words_)/.test(name))
  for (const name of names) db.exec(`DROP TABLE main."${name}"`)
  db.exec(SCHEMA)
  db.prepare(INSERT_ORIGIN).run(SCHEMA_DIGEST)
}
