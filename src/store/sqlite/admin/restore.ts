// Restore on SQLite: the backup is copied beside its target, checked there, and renamed in the end. The index is built by the
// next start.

import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { IdGap } from '../../../model/id-gaps.ts'
import { syncPath } from '../../../runtime/sync-path.ts'
import type { Restore } from '../../contract/backup.ts'
import { StoreRefused } from '../../contract/failure.ts'
import { inTransaction } from '../connection.ts'
import { indexPath } from '../index/index-file.ts'
import { lockPath } from '../lock.ts'
import { migrate } from '../schema.ts'
import { openBackup, structureOf } from './backup.ts'
import { sideOf } from './copy.ts'
import { addGap } from './recovery.ts'

const SIDE_FILES = ['', '-wal', '-shm']
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
  const inodeOfPart = () => statSync(part, { throwIfNoEntry: false })?.ino
  let db: DatabaseSync | null = null
  let inode: number | undefined
  return {
    loadedUrl: `sqlite:${part}`,
    async load() {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      // Left by a restore that was interrupted.
      removePart()
      closeSync(openSync(part, 'wx', 0o600))
      inode = inodeOfPart()
      copyFileSync(file, part)
      chmodSync(part, 0o600)
      const opened = openBackup(part, 'tool', file)
      db = opened
      migrate(opened)
      return { structure: async () => structureOf(opened), rows: sideOf(opened, part), close: async () => {} }
    },
    async finish(now) {
      const opened = db!
      // A backup of a frozen database is not part of that copy.
      await sideOf(opened, part).release()
      const gap: IdGap = inTransaction(opened, () => {
        opened.exec(FORGET)
        return addGap(opened, now)
      })
      opened.close()
      if (inodeOfPart() !== inode) {
        throw new StoreRefused(`Another command restores to ${path} now. This restore was given up.`)
      }
      // A server may have made a database there meanwhile.
      requireAbsent(path)
      removeBeside()
      syncPath(part, 'r+')
      renameSync(part, path)
      syncPath(dirname(path))
      return gap
    },
    async discard() {
      if (db?.isOpen) db.close()
      // Unless it is the part of another command by now.
      if (inodeOfPart() === inode) removePart()
    },
  }
}

/** Refuses if any file of a database is there. */
export function requireAbsent(path: string): void {
  const existing = [path, indexPath(path)].flatMap((file) => SIDE_FILES.map((end) => file + end)).find(existsSync)
  if (existing === undefined) return
  throw new StoreRefused(`${existing} exists. Nothing is overwritten: give another --to, or move the file away.`)
}

export function removeDatabase(path: string): void {
  for (const end of SIDE_FILES.toReversed()) rmSync(path + end, { force: true })
}
