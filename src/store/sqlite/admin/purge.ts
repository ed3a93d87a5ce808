// Makes erased content leave the files of SQLite, in steps:
//
//   erased in the journal ─► cleaned from the index ─► search words merged ─► both WALs emptied ─► purged
//
// secure_delete overwrites what a step deletes; the merge drops the words of deleted rows from the segments of FTS5; the WALs
// keep pages as they were. A step that is lost with the process is done again from the positions in the index.

import type { DatabaseSync } from 'node:sqlite'
import type { ErasureStore } from '../../contract/erasures.ts'
import type { RetentionStore } from '../../contract/retention.ts'
import { guard } from '../guarded-calls.ts'
import { purgePosition } from '../index/index-purges.ts'
import type { Executor, IndexOperations, Operations } from '../operations.ts'
import { readFailure } from '../connection.ts'
import { erasurePositions, lastErasure } from './erasures.ts'

/** Erasures that one step cleans from the index. */
const CLEAN_ROWS = 200

export interface PurgeOptions {
  readonly main: DatabaseSync
  readonly writer: Executor<Operations>
  readonly indexer: Executor<IndexOperations>
}

export function createPurge({ main, writer, indexer }: PurgeOptions): ErasureStore['purge'] {
  /** The erasures that the merge under way covers; null: none is under way. */
  let merging: number | null = null
  let isMerged = false

  const positions = () => {
    try {
      return { newest: lastErasure(main), ...erasurePositions(main) }
    } catch (error) {
      throw readFailure(error)
    }
  }

  return async () => {
    const { newest, cleaned, purged } = positions()
    if (purged >= newest) return { more: false, waits: false }
    if (cleaned < newest) {
      if (await indexer.run('followPurges', [CLEAN_ROWS])) return { more: true, waits: false }
      await indexer.run('clean', [CLEAN_ROWS])
      return { more: true, waits: false }
    }
    const isFirst = merging === null
    if (isFirst) [merging, isMerged] = [cleaned, false]
    if (!isMerged) {
      isMerged = await indexer.run('mergeWords', [isFirst])
      return { more: true, waits: false }
    }
    const isTruncated = (await indexer.run('truncateIndexWal', [])) && (await writer.run('truncateWal', []))
    if (!isTruncated) return { more: true, waits: true }
    await indexer.run('notePurged', [merging!])
    merging = null
    return { more: true, waits: false }
  }
}

/**
 * Follows retention in the index. What was followed is forgotten once the index is checkpointed: a power failure may take back
 * commits of the index that were not.
 */
export function createFollowPurges({ main, writer, indexer }: PurgeOptions): RetentionStore['followPurges'] {
  const position = () => guard(() => purgePosition(main))
  let forgotten = -1
  return async () => {
    if (await indexer.run('followPurges', [CLEAN_ROWS])) return true
    const followed = await position()
    if (followed === forgotten) return false
    if (!(await indexer.run('truncateIndexWal', []))) return false
    await writer.run('forgetPurges', [followed])
    forgotten = followed
    return false
  }
}
