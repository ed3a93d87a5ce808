// Restore on SQLite: the backup is copied beside its target, checked there, and gets its name in the end. The index is built by
// the next start.

import { chmodSync, closeSync, copyFileSync, existsSync, linkSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { IdGap } from '../../../model/id-gaps.ts'
import { syncPath } from '../../../runtime/sync-path.ts'
import type { Restore } from '../../contract/backup.ts'
import { StoreRefused } from '../../contract/failure.ts'
import { inTransaction } from '../connection.ts'
import { indexPath } from '../index/index-file.ts'
import { acquireRestoreLock, lockPath, type Lock, restoreLockPath } from '../lock.ts'
import { migrate } from '../schema.ts'
import { openBackup, structureOf } from './backup.ts'
import { sideOf } from './copy.ts'
import { addGap } from './recovery.ts'

const SIDE_FILES = ['', '-wal', '-shm']
/** The commands that make a database beside its place and then name it. */
type Maker = 'restore' | 'salvage'
/** They belong to the servers and browsers of the old database. */
const FORGET = 'DELETE FROM nodes; DELETE FROM sessions; DELETE FROM sign_in_links'

/** `file`: the backup that will be loaded. */
export function openSqliteRestore(path: string, file: string): Restore {
  requireAbsent(path)
  const part = `${path}.part`
  if (resolve(file) === part) throw new StoreRefused(`${file} is what an interrupted restore left. Give a backup.`)
  /** The index and the lock of a store that was open on it. */
  const removeBeside = () => {
    for (const file of [indexPath(part), lockPath(part)]) removeDatabase(file)
  }
  const removePart = () => {
    removeDatabase(part)
    removeBeside()
  }
  let db: DatabaseSync | null = null
  let lock: Lock | null = null
  return {
    loadedUrl: `sqlite:${part}`,
    async load() {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      lock = acquireRestoreLock(path)
      // Left by a restore that was interrupted.
      removePart()
      closeSync(openSync(part, 'wx', 0o600))
      copyFileSync(file, part)
      chmodSync(part, 0o600)
      const opened = openBackup(part, 'tool', file)
      db = opened
      migrate(opened)
      const rows = sideOf(opened, part)
      // A backup of a frozen database is not part of that copy.
      await rows.release()
      return { structure: async () => structureOf(opened), rows, close: async () => {} }
    },
    async finish(now) {
      const opened = db!
      const gap: IdGap = inTransaction(opened, () => {
        opened.exec(FORGET)
        return addGap(opened, now)
      })
      opened.close()
      removeBeside()
      syncPath(part, 'r+')
      // A server may have made a database there meanwhile.
      requireAbsent(path)
      linkInto(part, path)
      rmSync(part)
      syncPath(dirname(path))
      return gap
    },
    async discard() {
      if (db?.isOpen) db.close()
      if (lock === null) return
      removePart()
      rmSync(restoreLockPath(path), { force: true })
      lock.release()
    },
  }
}

/** Refuses if any file of a database is there. */
export function requireAbsent(path: string, command: Maker = 'restore'): void {
  const existing = [path, indexPath(path)].flatMap((file) => SIDE_FILES.map((end) => file + end)).find(existsSync)
  if (existing === undefined) return
  throw overwrites(existing, command)
}

/** A rename would overwrite a database that appears in the last moment. */
export function linkInto(part: string, path: string, command: Maker = 'restore'): void {
  try {
    linkSync(part, path)
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? overwrites(path, command) : error
  }
}

function overwrites(existing: string, command: Maker): StoreRefused {
  return new StoreRefused(
    `${existing} exists. A ${command} overwrites nothing: give another --to, or move the file away.`,
  )
}

export function removeDatabase(path: string): void {
  for (const end of SIDE_FILES.toReversed()) rmSync(path + end, { force: true })
}
