// The mark of a restore that has not finished: a schema whose comment names the restore. It is made before pg_restore begins, and
// dropped in the transaction that puts the database in place. Until then the database lacks the gap in its ids, and only the
// restore itself may open it.

import { StoreRefused } from '../../contract/failure.ts'
import type { Connection } from '../connection/connection.ts'

/** Sessions of pg_restore carry it: they outlive a restore that is killed. */
export const RESTORE_APPLICATION = 'intray_restore'

const END_WITHIN_MS = 20_000
const SELECT_MARK = `SELECT obj_description(to_regnamespace('intray_restore'), 'pg_namespace') AS mark`
const END_SESSIONS = `SELECT pg_terminate_backend(pid, ${END_WITHIN_MS}) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = '${RESTORE_APPLICATION}'`

/** The restore that has not finished; null if there is none. */
export async function readMark(connection: Connection): Promise<string | null> {
  const [row] = await connection.query<{ mark: string | null }>(SELECT_MARK)
  return row!.mark
}

/** `restore`: the one that opens the database; null for anybody else. */
export async function refuseUnfinished(connection: Connection, restore: string | null): Promise<void> {
  const mark = await readMark(connection)
  if (mark === null || mark === restore) return
  throw new StoreRefused(
    'A restore into this database has not finished. Wait for it; if it was interrupted, run it again: it starts over.',
  )
}

/** `restore`: a UUID. */
export function setMark(connection: Connection, restore: string): Promise<void> {
  return connection.script(`CREATE SCHEMA intray_restore; COMMENT ON SCHEMA intray_restore IS '${restore}'`)
}

export function dropMark(connection: Connection): Promise<void> {
  return connection.script('DROP SCHEMA intray_restore')
}

/** Removes what an unfinished restore has loaded, and its mark. Nothing else can have made the schema while the mark was set. */
export async function removeUnfinished(connection: Connection): Promise<void> {
  await connection.query(END_SESSIONS)
  await connection.script('DROP SCHEMA IF EXISTS intray CASCADE')
  await dropMark(connection)
}
