// Gaps in the ids and the time of the last backup, on SQLite.

import type { DatabaseSync } from 'node:sqlite'
import { epochStart, type IdGap, resumePoint } from '../../../model/id-gaps.ts'
import type { RecoveryStore } from '../../contract/recovery.ts'
import { readSequence } from '../journal/sequence.ts'

/** The key in `meta`: milliseconds, as text. */
export const LAST_BACKUP = 'last_backup'
const SELECT_EPOCHS = 'SELECT after_id AS "after", before_id AS "before" FROM id_gaps ORDER BY after_id'
const SELECT_GAPS = `SELECT after_id AS "after", before_id AS "before" FROM id_gaps
  UNION ALL SELECT from_id, after_id FROM tenant_gaps WHERE from_id < after_id ORDER BY 1`
const SELECT_TENANT_GAP = 'SELECT after_id FROM tenant_gaps WHERE company_id = ? AND account_id = ?'
const INSERT_GAP = 'INSERT INTO id_gaps (after_id, before_id, begun_at) VALUES (?, ?, ?)'
const JUMP = "UPDATE sequences SET value = ? WHERE name = 'events'"
const SELECT_META = 'SELECT value FROM meta WHERE key = ?'

/** Of restores. */
export function readEpochs(db: DatabaseSync): IdGap[] {
  return db.prepare(SELECT_EPOCHS).all() as unknown as IdGap[]
}

/** Of restores, and of tenants that were moved here. */
export function readGaps(db: DatabaseSync): IdGap[] {
  return db.prepare(SELECT_GAPS).all() as unknown as IdGap[]
}

/** Inside a transaction of the caller. */
export function addGap(db: DatabaseSync, now: number): IdGap {
  const after = readSequence(db, 'events')
  const gap = { after, before: epochStart(after, now) }
  db.prepare(INSERT_GAP).run(gap.after, gap.before, now)
  db.prepare(JUMP).run(gap.before)
  return gap
}

/** `gaps`: as they were when the store was opened. A tenant that is moved here meanwhile has a gap of its own. */
export function createRecovery(
  db: DatabaseSync,
  gaps: readonly IdGap[],
  beginEpoch: RecoveryStore['beginEpoch'],
): RecoveryStore {
  return {
    resumePointOf: async ({ companyId, accountId }, cursor) => {
      const moved = db.prepare(SELECT_TENANT_GAP).get(companyId, accountId)
      return resumePoint(gaps, readSequence(db, 'events'), cursor, (moved?.after_id as number | undefined) ?? null)
    },
    beginEpoch,
    lastBackupAt: async () => {
      const row = db.prepare(SELECT_META).get(LAST_BACKUP)
      return row ? Number(Buffer.from(row.value as Uint8Array).toString()) : null
    },
  }
}
