// Self-checks on PostgreSQL.

import type { BlockingTransaction, Diagnosis, StructureProblem } from '../../contract/diagnosis.ts'
import { storeFailure } from '../connection/failure.ts'
import type { Pool } from '../connection/pool.ts'
import { DERIVED_TABLES } from '../index/clearing.ts'

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
export const COUNT_UNREADABLE = `SELECT coalesce(sum(last_id - first_id + 1), 0)::bigint AS ids FROM intray.unreadable`
const SELECT_UNREADABLE = `SELECT first_id AS first, last_id AS last FROM intray.unreadable ORDER BY first_id LIMIT 20`

export function createDiagnosis(pool: Pool): Diagnosis {
  return {
    // The server itself verifies page checksums on every read, if the cluster has them. Primary tables are read by other checks.
    structure: async () => (await Promise.all(DERIVED_TABLES.map((table) => problemsOf(pool, table)))).flat(),
    blockingTransactions: () =>
      pool.use((connection) => connection.query<BlockingTransaction & Record<string, never>>(SELECT_BLOCKING)),
    openFiles: async () => [],
    unreadable: () =>
      pool.use(async (connection) => {
        const [row] = await connection.query<{ ids: number }>(COUNT_UNREADABLE)
        const ranges = await connection.query<{ first: number; last: number }>(SELECT_UNREADABLE)
        return { ids: row!.ids, ranges }
      }),
    unindexed: () =>
      pool.use(async (connection) => {
        const [row] = await connection.query<{ count: number }>(COUNT_UNINDEXED)
        return row!.count
      }),
  }
}

/** Reads a derived table from its first page to its last. */
async function problemsOf(pool: Pool, table: string): Promise<StructureProblem[]> {
  try {
    await pool.use((connection) => connection.query(`SELECT count(t.*) AS count FROM intray.${table} t`))
    return []
  } catch (error) {
    const { kind, message: problem } = storeFailure(error)
    if (kind !== 'damaged') throw error
    return [{ part: 'index', file: 'the index', table, problem }]
  }
}
