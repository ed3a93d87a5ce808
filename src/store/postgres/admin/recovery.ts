// Gaps in the ids and the time of the last backup, on PostgreSQL.

import { epochStart, type IdGap, resumePoint } from '../../../model/id-gaps.ts'
import type { RecoveryStore } from '../../contract/recovery.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Pool } from '../connection/pool.ts'
import { readLastIds } from '../journal/watermark.ts'

const SELECT_EPOCHS = 'SELECT after_id AS after, before_id AS before FROM intray.id_gaps ORDER BY after_id'
const SELECT_GAPS: Statement = {
  name: 'intray_gaps',
  text: `SELECT after_id AS after, before_id AS before FROM intray.id_gaps
  UNION ALL SELECT from_id, after_id FROM intray.tenant_gaps WHERE from_id < after_id ORDER BY 1`,
}
/**
 * Clients know ids of committed rows, and the watermark. The sequence may be ahead of both: after a recovery it has skipped up to
 * 32 ids, which the old database gave out.
 */
const SELECT_AFTER = `SELECT greatest((SELECT max(id) FROM intray.events),
  (SELECT watermark FROM intray.index_cursors WHERE source = 'events')) AS after`
const SELECT_TENANT_GAP: Statement = {
  name: 'intray_tenant_gap',
  text: 'SELECT after_id AS after FROM intray.tenant_gaps WHERE company_id = $1 AND account_id = $2',
}
const INSERT_GAP = 'INSERT INTO intray.id_gaps (after_id, before_id, begun_at) VALUES ($1, $2, $3)'
const JUMP = `SELECT setval('intray.event_ids', $1)`
const SELECT_LAST_BACKUP = `SELECT convert_from(value, 'UTF8') AS at FROM intray.meta WHERE key = 'last_backup'`

/** `gaps`: as they were when the store was opened. A tenant that is moved here meanwhile has a gap of its own. */
export function createRecovery(pool: Pool, gaps: readonly IdGap[]): RecoveryStore {
  return {
    resumePointOf: ({ companyId, accountId }, cursor) =>
      pool.use(async (connection) => {
        const { events } = await readLastIds(connection)
        const [moved] = await connection.query<{ after: number }>(SELECT_TENANT_GAP, [companyId, accountId])
        return resumePoint(gaps, events, cursor, moved?.after ?? null)
      }),
    beginEpoch: (now) => pool.transaction((connection) => addGap(connection, now)),
    lastBackupAt: () =>
      pool.use(async (connection) => {
        const [row] = await connection.query<{ at: string }>(SELECT_LAST_BACKUP)
        return row ? Number(row.at) : null
      }),
  }
}

/** Of restores. */
export function readEpochs(connection: Connection): Promise<IdGap[]> {
  return connection.query<IdGap & Record<string, never>>(SELECT_EPOCHS)
}

/** Of restores, and of tenants that were moved here. */
export function readGaps(connection: Connection): Promise<IdGap[]> {
  return connection.query<IdGap & Record<string, never>>(SELECT_GAPS)
}

/** Inside a transaction of the caller. */
export async function addGap(connection: Connection, now: number): Promise<IdGap> {
  const [row] = await connection.query<{ after: number }>(SELECT_AFTER)
  const after = row!.after
  const before = epochStart(Math.max(after, (await readLastIds(connection)).events), now)
  await connection.query(INSERT_GAP, [after, before, now])
  await connection.query(JUMP, [before])
  return { after, before }
}
