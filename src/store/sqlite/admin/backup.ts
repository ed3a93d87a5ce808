// Backups on SQLite: VACUUM INTO writes one snapshot of the journal into a new file, in a thread, while a server writes on.
// The index is left out, since it is rebuilt.

import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import type { BackupFile, BackupSource } from '../../contract/backup.ts'
import { StoreRefused } from '../../contract/failure.ts'
import { type ConnectionRole, openConnection, requireFile, storeFailure } from '../connection.ts'
import { migrate, needsMigration } from '../schema.ts'
import { isServerRunning } from '../lock.ts'
import { sideOf } from './copy.ts'
import { LAST_BACKUP } from './recovery.ts'

const VACUUM_THREAD = new URL('../threads/vacuum-thread.ts', import.meta.url)
const LOOK_EVERY_MS = 200

/** A key is never deleted. */
const COUNT_ROWS = 'SELECT (SELECT count(*) FROM dedupe) AS dedupe, (SELECT count(*) FROM events) AS events'
/** Every row of `events` that retention deletes has a number. */
const LAST_PURGE = "SELECT seq FROM sqlite_sequence WHERE name = 'purges'"
const NOTE = 'INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)'
const SELECT_PAGES = `SELECT (page_count - freelist_count) * page_size AS bytes
  FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()`

export async function openSqliteBackup(path: string): Promise<BackupSource> {
  requireFile(path)
  const db = openConnection(path, 'tool')
  try {
    if (needsMigration(db) && isServerRunning(path)) {
      throw new StoreRefused('A server of another version is running on the database. Use its version of this command.')
    }
    migrate(db)
  } catch (error) {
    db.close()
    throw error
  }
  return {
    extension: '.db',
    write: async (file, say) => {
      const purgedBefore = lastPurge(db)
      const { dedupe, events } = db.prepare(COUNT_ROWS).get() as { dedupe: number; events: number }
      const bytes = Number(db.prepare(SELECT_PAGES).get()?.bytes)
      await vacuumInto(path, file, (written) => say(`${megabytes(written)} of about ${megabytes(bytes)} MB written`))
      return { dedupe, events: events - (lastPurge(db) - purgedBefore) }
    },
    note: async (begunAt) => {
      db.prepare(NOTE).run(LAST_BACKUP, Buffer.from(String(begunAt)))
    },
    close: async () => db.close(),
  }
}

/** Read-only, so the file stays as it is. */
export function openSqliteBackupFile(file: string): BackupFile {
  const db = openBackup(file, 'reader', file)
  if (needsMigration(db)) {
    db.close()
    throw new StoreRefused(`${file} was made by another version of Intray. Check it with that version.`)
  }
  return {
    structure: async () => structureOf(db),
    rows: sideOf(db, file),
    close: async () => db.close(),
  }
}

/** Refuses a file that is no database of Intray, or too damaged to tell. `file`: its name for the user. */
export function openBackup(path: string, role: ConnectionRole, file: string): DatabaseSync {
  let db: DatabaseSync | null = null
  try {
    db = openConnection(path, role)
    db.prepare('SELECT count(*) FROM schema_migrations').get()
    return db
  } catch (error) {
    db?.close()
    const reason = error instanceof Error && !(error instanceof StoreRefused) ? ` (${error.message})` : ''
    throw new StoreRefused(`${file} is damaged, or not a backup of Intray${reason}.`, { cause: error })
  }
}

/** The whole check: that every index matches its table as well. */
export function structureOf(db: DatabaseSync): string[] {
  try {
    const lines = db.prepare('PRAGMA integrity_check(20)').all()
    return lines.map((row) => String(Object.values(row)[0])).filter((line) => line !== 'ok')
  } catch (error) {
    return [(error as Error).message]
  }
}

const lastPurge = (db: DatabaseSync): number => Number(db.prepare(LAST_PURGE).get()?.seq ?? 0)

/** SQLite reports no progress, so the size of the file is looked at. */
async function vacuumInto(path: string, file: string, onWritten: (bytes: number) => void): Promise<void> {
  const timer = setInterval(() => onWritten(statSync(file, { throwIfNoEntry: false })?.size ?? 0), LOOK_EVERY_MS)
  try {
    await new Promise<void>((resolve, reject) => {
      const worker = new Worker(VACUUM_THREAD, { workerData: { path, file } })
      worker.once('error', reject)
      worker.once('exit', () => resolve())
    })
  } catch (error) {
    throw storeFailure(error)
  } finally {
    clearInterval(timer)
  }
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)
