// The target of a salvage on SQLite: filled beside its place, which it takes in the end.

import { dirname } from 'node:path'
import { syncPath } from '../../../runtime/sync-path.ts'
import type { SalvageTarget } from '../../contract/copy.ts'
import { indexPath } from '../index/index-file.ts'
import { isServerRunning, lockPath } from '../lock.ts'
import { StoreRefused } from '../../contract/failure.ts'
import { openSqliteCopy } from './copy.ts'
import { linkInto, removeDatabase, requireAbsent } from './restore.ts'

export async function openSqliteSalvage(path: string): Promise<SalvageTarget> {
  requireAbsent(path, 'salvage')
  const part = `${path}.part`
  if (isServerRunning(part)) throw new StoreRefused(`Another salvage writes ${part} now. Wait until it ends.`)
  // Left by a salvage that was interrupted.
  const removePart = () => {
    for (const file of [part, indexPath(part), lockPath(part)]) removeDatabase(file)
  }
  removePart()
  const side = await openSqliteCopy(part, false)
  let isPublished = false
  return {
    side,
    async publish() {
      await side.close()
      requireAbsent(path, 'salvage')
      syncPath(part, 'r+')
      linkInto(part, path, 'salvage')
      syncPath(dirname(path))
      isPublished = true
      removePart()
    },
    async discard() {
      if (isPublished) return
      await side.close().catch(() => {})
      removePart()
    },
  }
}
