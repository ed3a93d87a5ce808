// Removes from the index what it holds of erased rows, following the erasure log, in turn with the steps of the indexer.

import { ERASED_CHANNEL } from '../../../model/erasure.ts'
import { bigints } from '../connection/binary-array.ts'
import type { Connection } from '../connection/connection.ts'
import { sqlState, storeFailure } from '../connection/failure.ts'
import { followInTurn } from './index-purges.ts'
import { LOCK_NOT_AVAILABLE, TAKE_TURN } from './indexing.ts'

const SELECT_POSITION = `SELECT position FROM intray.index_cursors WHERE source = 'erasures'`
const HAS_MORE = `SELECT EXISTS (SELECT FROM intray.erasures WHERE id > (${SELECT_POSITION})) AS more`
const SELECT = `SELECT x.id, x.company_id, x.account_id, x.event_id, e.channel_ref
  FROM (SELECT * FROM intray.erasures WHERE id > $1 ORDER BY id LIMIT $2) x
  LEFT JOIN intray.events e ON e.id = x.event_id AND e.company_id = x.company_id ORDER BY x.id`
const ROWS = `(SELECT unnest($1::bigint[]) AS company_id, unnest($2::bigint[]) AS account_id, unnest($3::bigint[]) AS event_id) k`
const MATCH = 'k.company_id = t.company_id AND k.account_id = t.account_id AND k.event_id = t.event_id'
const CLEAN_ENTRIES = `UPDATE intray.event_index t SET erased = 1, contact_name = NULL, contact_email = NULL, email_key = NULL,
    message_type = NULL, snippet = NULL, warnings = NULL, unindexed = NULL
  FROM ${ROWS} WHERE ${MATCH} AND t.erased = 0 RETURNING t.event_id, t.conversation_id`
const DELETE_WORDS = `DELETE FROM intray.event_words t USING ${ROWS} WHERE ${MATCH}`
const CLEAN_CONVERSATION = `UPDATE intray.conversations SET
    erased_count = erased_count + cardinality($1::bigint[]),
    channel_ref = CASE WHEN erased_count + cardinality($1::bigint[]) = event_count THEN '${ERASED_CHANNEL}' || channel_key
      ELSE channel_ref END,
    first_contact_name = CASE WHEN id = ANY ($1::bigint[]) THEN NULL ELSE first_contact_name END,
    first_contact_email = CASE WHEN id = ANY ($1::bigint[]) THEN NULL ELSE first_contact_email END,
    last_contact_name = CASE WHEN last_event_id = ANY ($1::bigint[]) THEN NULL ELSE last_contact_name END,
    last_contact_email = CASE WHEN last_event_id = ANY ($1::bigint[]) THEN NULL ELSE last_contact_email END,
    last_snippet = CASE WHEN last_event_id = ANY ($1::bigint[]) THEN NULL ELSE last_snippet END
  WHERE company_id = $2 AND account_id = $3 AND channel_key = $4`
const MOVE_CURSOR = `UPDATE intray.index_cursors SET position = $1 WHERE source = 'erasures'`

interface ErasedRow {
  readonly id: number
  readonly company_id: number
  readonly account_id: number
  readonly event_id: number
  /** Null without one, or if the row was purged. */
  readonly channel_ref: string | null
}

export async function readErasurePosition(connection: Connection): Promise<number> {
  const [row] = await connection.query<{ position: number }>(SELECT_POSITION)
  return row!.position
}

/** One bounded step; true if more is left. */
export async function cleanErased(connection: Connection, maxRows: number): Promise<boolean> {
  const hasMore = async () => {
    const [row] = await connection.query<{ more: boolean }>(HAS_MORE)
    return row!.more
  }
  if (!(await hasMore())) return false
  try {
    await connection.transaction(async () => {
      await connection.script(TAKE_TURN)
      // Entries of rows that were purged since are removed first: their conversations are counted by the entries.
      while (await followInTurn(connection, maxRows));
      await cleanInTurn(connection, maxRows)
    }, 'reads')
  } catch (error) {
    // Another node holds the turn for long.
    if (sqlState(storeFailure(error).cause) !== LOCK_NOT_AVAILABLE) throw error
  }
  return hasMore()
}

async function cleanInTurn(connection: Connection, maxRows: number): Promise<void> {
  const rows = await connection.query<ErasedRow>(SELECT, [await readErasurePosition(connection), maxRows])
  const last = rows.at(-1)
  if (!last) return
  const keys = [
    bigints(rows.map((row) => row.company_id)),
    bigints(rows.map((row) => row.account_id)),
    bigints(rows.map((row) => row.event_id)),
  ]
  const cleaned = await connection.query<{ event_id: number; conversation_id: number | null }>(CLEAN_ENTRIES, keys)
  await connection.query(DELETE_WORDS, keys)
  // Entries that are missing here are not indexed yet, or were indexed after the erasure and counted as erased then.
  const inConversation = new Set(cleaned.flatMap((one) => (one.conversation_id === null ? [] : [one.event_id])))
  for (const [first, ids] of groupByConversation(rows.filter((row) => inConversation.has(row.event_id)))) {
    const key = first.channel_ref!.slice(ERASED_CHANNEL.length)
    await connection.query(CLEAN_CONVERSATION, [bigints(ids), first.company_id, first.account_id, key])
  }
  await connection.query(MOVE_CURSOR, [last.id])
}

function groupByConversation(rows: readonly ErasedRow[]): Map<ErasedRow, number[]> {
  const firsts = new Map<string, ErasedRow>()
  const groups = new Map<ErasedRow, number[]>()
  for (const row of rows) {
    if (row.channel_ref === null) continue
    const name = `${row.company_id}:${row.account_id}:${row.channel_ref}`
    const first = firsts.get(name) ?? row
    firsts.set(name, first)
    groups.set(first, [...(groups.get(first) ?? []), row.event_id])
  }
  return groups
}
