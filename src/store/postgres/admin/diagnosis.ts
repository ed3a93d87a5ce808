// Self-checks on PostgreSQL.

import type { BlockingTransaction, Diagnosis } from '../../contract/diagnosis.ts'
import type { Pool } from '../connection/pool.ts'

/**
 * Every open transaction with an xid below the end of the newest snapshot, in any database of the server, holds the
 * watermark back. Only those of a second or more: appends take milliseconds.
 */
const SELECT_BLOCKING = `SELECT pid, coalesce(datname, '') AS database, application_name AS application, state,
    extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
  FROM pg_stat_activity
  WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - interval '1 second'
  ORDER BY xact_start`
const COUNT_UNINDEXED = 'SELECT count(*) AS count FROM intray.event_index WHERE unindexed IS NOT NULL'

export function createDiagnosis(pool: Pool): Diagnosis {
  return {
    // The server itself verifies page checksums on every read, if the cluster has them.
    structure: async () => [],
    blockingTransactions: () =>
      pool.use((connection) => connection.query<BlockingTransaction & Record<string, never>>(SELECT_BLOCKING)),
    openFiles: async () => [],
    unindexed: () =>
      pool.use(async (connection) => {
        const [row] = await connection.query<{ count: number }>(COUNT_UNINDEXED)
        return row!.count
      }),
  }
}
