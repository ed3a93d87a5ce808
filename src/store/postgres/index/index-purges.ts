// Removes from the index what retention has deleted from the journal, following the table `purges`, in turn with the steps of the
// indexer.

import { ERASED_CHANNEL } from '../../../model/erasure.ts'
import { bigints } from '../connection/binary-array.ts'
import type { Connection, Statement } from '../connection/connection.ts'
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
/** Looked up one by one, whatever join a planner without statistics would choose. */
const SELECT_KEYS = `SELECT (SELECT channel_key FROM intray.conversation_ids c WHERE c.company_id = k.company_id
    AND c.account_id = k.account_id AND c.id = k.event_id) AS channel_key FROM ${ROWS}`
const DELETE_CONVERSATION: Statement = {
  name: 'intray_delete_conversation',
  text: `DELETE FROM intray.conversations WHERE company_id = $1 AND account_id = $2 AND channel_key = $3 AND event_count <= $4`,
}
const ENTRIES = `FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND conversation_id = $3`
/** The first and the last of its events that are left. */
const UPDATE_CONVERSATION: Statement = {
  name: 'intray_shrink_conversation',
  text: `UPDATE intray.conversations SET
    event_count = event_count - $5, erased_count = erased_count - $6,
    channel_ref = CASE WHEN erased_count - $6 = event_count - $5 THEN '${ERASED_CHANNEL}' || channel_key ELSE channel_ref END,
    (first_received_at, first_contact_name, first_contact_email) =
      (SELECT received_at, contact_name, contact_email ${ENTRIES} ORDER BY conversation_id, event_id LIMIT 1),
    (last_event_id, last_received_at, last_contact_name, last_contact_email, last_snippet) =
      (SELECT event_id, received_at, contact_name, contact_email, snippet ${ENTRIES}
        ORDER BY conversation_id DESC, event_id DESC LIMIT 1)
  WHERE company_id = $1 AND account_id = $2 AND channel_key = $4`,
}

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
  await shrink(connection, Array.from(losses.values()))
  return true
}

/** Sent together: a round trip for each conversation would take longer than all of the rest. */
async function shrink(connection: Connection, losses: readonly Loss[]): Promise<void> {
  if (losses.length === 0) return
  const known = await connection.query<{ channel_key: string | null }>(SELECT_KEYS, [
    bigints(losses.map(({ tenant }) => tenant[0])),
    bigints(losses.map(({ tenant }) => tenant[1])),
    bigints(losses.map(({ conversationId }) => conversationId)),
  ])
  for (const [n, { tenant, conversationId, events, erased }] of losses.entries()) {
    const key = known[n]!.channel_key
    if (key === null) continue
    connection.send(DELETE_CONVERSATION, [...tenant, key, events])
    connection.send(UPDATE_CONVERSATION, [...tenant, conversationId, key, events, erased])
  }
}
