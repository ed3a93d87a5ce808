// Removes from the index what retention has deleted from the journal, following the table `purges`, in turn with the steps of the
// indexer.

import { ERASED_CHANNEL } from '../../../model/erasure.ts'
import { bigints } from '../connection/binary-array.ts'
import type { Connection } from '../connection/connection.ts'
import { sqlState, storeFailure } from '../connection/failure.ts'
import { LOCK_NOT_AVAILABLE, TAKE_TURN } from './indexing.ts'

const HAS_PURGES = 'SELECT EXISTS (SELECT FROM intray.purges) AS more'
const TAKE = `DELETE FROM intray.purges WHERE ctid = ANY (ARRAY(SELECT ctid FROM intray.purges ORDER BY id LIMIT $1))
  RETURNING company_id, account_id, event_id`
const ROWS = `(SELECT unnest($1::bigint[]) AS company_id, unnest($2::bigint[]) AS account_id, unnest($3::bigint[]) AS event_id) k`
const MATCH = 'k.company_id = t.company_id AND k.account_id = t.account_id AND k.event_id = t.event_id'
const DELETE_ENTRIES = `DELETE FROM intray.event_index t USING ${ROWS} WHERE ${MATCH}
  RETURNING t.company_id, t.account_id, t.conversation_id, t.erased`
const DELETE_WORDS = `DELETE FROM intray.event_words t USING ${ROWS} WHERE ${MATCH}`
const DELETE_REPEATS = `DELETE FROM intray.repeats t
  USING (SELECT unnest($1::bigint[]) AS company_id, unnest($2::bigint[]) AS event_id) k
  WHERE k.company_id = t.company_id AND k.event_id = t.event_id`
const SELECT_KEY =
  'SELECT channel_key FROM intray.conversation_ids WHERE company_id = $1 AND account_id = $2 AND id = $3'
const ENTRIES = `FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND conversation_id = $3`
/** The first and the last of its events that are left. */
const UPDATE_CONVERSATION = `UPDATE intray.conversations SET
    event_count = event_count - $5, erased_count = erased_count - $6,
    channel_ref = CASE WHEN erased_count - $6 = event_count - $5 THEN '${ERASED_CHANNEL}' || channel_key ELSE channel_ref END,
    (first_received_at, first_contact_name, first_contact_email) =
      (SELECT received_at, contact_name, contact_email ${ENTRIES} ORDER BY conversation_id, event_id LIMIT 1),
    (last_event_id, last_received_at, last_contact_name, last_contact_email, last_snippet) =
      (SELECT event_id, received_at, contact_name, contact_email, snippet ${ENTRIES}
        ORDER BY conversation_id DESC, event_id DESC LIMIT 1)
  WHERE company_id = $1 AND account_id = $2 AND channel_key = $4 AND event_count > $5`
const DELETE_CONVERSATION =
  'DELETE FROM intray.conversations WHERE company_id = $1 AND account_id = $2 AND channel_key = $3'

interface Loss {
  readonly tenant: readonly [companyId: number, accountId: number]
  readonly conversationId: number
  events: number
  erased: number
}

export async function hasPurges(connection: Connection): Promise<boolean> {
  const [row] = await connection.query<{ more: boolean }>(HAS_PURGES)
  return row!.more
}

/** One bounded step; true if more may be left. */
export async function followPurges(connection: Connection, maxRows: number): Promise<boolean> {
  if (!(await hasPurges(connection))) return false
  try {
    return await connection.transaction(async () => {
      await connection.script(TAKE_TURN)
      return followInTurn(connection, maxRows)
    }, 'reads')
  } catch (error) {
    // Another node holds the turn for long.
    if (sqlState(storeFailure(error).cause) !== LOCK_NOT_AVAILABLE) throw error
    return false
  }
}

/** The same inside of a turn of the caller. */
export async function followInTurn(connection: Connection, maxRows: number): Promise<boolean> {
  const rows = await connection.query<{ company_id: number; account_id: number; event_id: number }>(TAKE, [maxRows])
  if (rows.length === 0) return false
  const companies = bigints(rows.map((row) => row.company_id))
  const events = bigints(rows.map((row) => row.event_id))
  const keys = [companies, bigints(rows.map((row) => row.account_id)), events]
  const entries = await connection.query<{
    company_id: number
    account_id: number
    conversation_id: number | null
    erased: number
  }>(DELETE_ENTRIES, keys)
  await connection.query(DELETE_WORDS, keys)
  await connection.query(DELETE_REPEATS, [companies, events])
  const losses = new Map<string, Loss>()
  for (const { company_id, account_id, conversation_id: conversationId, erased } of entries) {
    if (conversationId === null) continue
    const name = `${company_id}:${account_id}:${conversationId}`
    const loss = losses.get(name) ?? { tenant: [company_id, account_id], conversationId, events: 0, erased: 0 }
    losses.set(name, loss)
    loss.events += 1
    loss.erased += erased
  }
  for (const loss of losses.values()) await shrink(connection, loss)
  return true
}

async function shrink(connection: Connection, { tenant, conversationId, events, erased }: Loss): Promise<void> {
  const [known] = await connection.query<{ channel_key: string }>(SELECT_KEY, [...tenant, conversationId])
  if (!known) return
  const values = [...tenant, conversationId, known.channel_key, events, erased]
  const changed = await connection.execute(UPDATE_CONVERSATION, values)
  if (changed === 0) await connection.query(DELETE_CONVERSATION, [...tenant, known.channel_key])
}
