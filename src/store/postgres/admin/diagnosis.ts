// What PostgreSQL can tell about itself.

import type { Diagnosis, Holder } from '../../contract/diagnosis.ts'
import type { Pool } from '../connection/pool.ts'

/**
 * Every transaction that has an xid below the newest snapshot's end, in any database of the server, holds the watermark back.
 * Those of a second or more: appends are over in milliseconds.
 */
const SELECT_HOLDERS = `SELECT pid, coalesce(datname, '') AS database, application_name AS application, state,
    extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
  FROM pg_stat_activity
  WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - interval '1 second'
  ORDER BY xact_start`
const COUNT_UNINDEXED = 'SELECT count(*) AS count FROM intray.event_index WHERE unindexed IS NOT NULL'

export function createDiagnosis(pool: Pool): Diagnosis {
  return {
    // Checksums of pages are checked by the server itself, on every read, where the cluster has them.
    structure: async () => [],
    holders: () => pool.use((connection) => connection.query<Holder & Record<string, never>>(SELECT_HOLDERS)),
    unindexed: () =>
      pool.use(async (connection) => {
        const [row] = await connection.query<{ count: number }>(COUNT_UNINDEXED)
        return row!.count
      }),
  }
}
