// What a PostgreSQL database of Intray holds, read in one statement each: quick for tens of thousands of rows, and on
// any server that can be reached, whether Intray would write to it or not.

import type { AuditedRow } from '../load.ts'
import { withClient } from './databases.ts'

/** Events and revisions of all accounts, or of one, in id order. */
export function readRows(url: string, accountId: number | null = null): Promise<AuditedRow[]> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ id: string; source_ref: string | null; payload: Buffer | null }>(
      `SELECT id, source_ref, payload FROM intray.events WHERE $1::bigint IS NULL OR account_id = $1 ORDER BY id`,
      [accountId],
    )
    return rows.map(({ id, source_ref: sourceRef, payload }) => ({ event: { id: Number(id), sourceRef }, payload }))
  })
}

type Counts = Record<string, number>

/** How many events each conversation has: by the index, and by the rows of the journal. */
export function readCounts(url: string): Promise<{ indexed: Counts; rows: Counts }> {
  return withClient(url, async (client) => {
    const counts = async (query: string): Promise<Counts> => {
      const { rows } = await client.query<{ channel_ref: string; count: number }>(query)
      return Object.fromEntries(rows.map(({ channel_ref: channelRef, count }) => [channelRef, count]))
    }
    return {
      indexed: await counts('SELECT channel_ref, event_count::int AS count FROM intray.conversations ORDER BY 1'),
      rows: await counts(
        `SELECT channel_ref, count(*)::int AS count FROM intray.events
         WHERE kind = 'event' AND channel_ref IS NOT NULL GROUP BY 1 ORDER BY 1`,
      ),
    }
  })
}
