// Reads the journal and the index by id. Readers see committed rows only, always on the server that accepts writes: a
// standby may lag behind acknowledged commits.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Repeats } from '../../../model/event.ts'
import { createConversationKeys } from '../../../model/erasure.ts'
import { payloadFields, isIntact } from '../../../model/payload.ts'
import type { Tenant } from '../../../model/principal.ts'
import type { EventReader } from '../../contract/events.ts'
import { StoreFailure } from '../../contract/failure.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { belongsTo, conversation, indexEntry } from '../../rows.ts'
import type { Connection, Row, Statement } from '../connection/connection.ts'
import type { Pool } from '../connection/pool.ts'
import { readWatermark } from './watermark.ts'

const SELECT: Statement = { name: 'intray_event', text: `SELECT ${EVENT_COLUMNS} FROM intray.events WHERE id = $1` }
const SELECT_PAYLOAD: Statement = {
  name: 'intray_payload',
  text: 'SELECT account_id, company_id, sha256, payload FROM intray.events WHERE id = $1',
}
const SELECT_REVISIONS: Statement = {
  name: 'intray_revisions',
  text: `SELECT ${EVENT_COLUMNS} FROM intray.events WHERE revises = $1 AND id > $2
  ORDER BY id LIMIT $3`,
}
const SELECT_ENTRY: Statement = {
  name: 'intray_entry',
  text: `SELECT conversation_id, contact_name, contact_email, message_type, snippet, warnings, unindexed
  FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND event_id = $3`,
}
const SELECT_REPEATS: Statement = {
  name: 'intray_repeats',
  text: 'SELECT resends, revisions, last_seen_at FROM intray.repeats WHERE company_id = $1 AND event_id = $2',
}
const SELECT_CONVERSATION: Statement = {
  name: 'intray_conversation',
  text: `SELECT channel_ref, id, event_count, first_received_at, last_event_id, last_received_at, first_contact_name,
    first_contact_email, last_contact_name, last_contact_email, last_snippet
  FROM intray.conversations WHERE company_id = $1 AND account_id = $2 AND channel_key = $3`,
}

export function createEventReader(pool: Pool, dedupeKey: Uint8Array): EventReader {
  const conversationKeys = createConversationKeys(dedupeKey)
  const one = async (statement: Statement, values: readonly (string | number)[]): Promise<Row | null> =>
    (await pool.use((connection) => connection.query(statement, values)))[0] ?? null

  const cells = <C extends readonly unknown[]>(statement: Statement, values: readonly number[]): Promise<C[]> =>
    pool.use((connection) => connection.rows<C>(statement, values))
  /** A number that is not a safe integer is no id: no query is needed. */
  const byId = async <C extends readonly unknown[]>(statement: Statement, id: number): Promise<C | null> =>
    Number.isSafeInteger(id) ? ((await cells<C>(statement, [id]))[0] ?? null) : null

  const intactPayload = async (id: number, tenant?: Tenant): Promise<Uint8Array | null> => {
    const found = await byId<[number, number, Uint8Array, Uint8Array | null]>(SELECT_PAYLOAD, id)
    if (!found) return null
    const [accountId, companyId, sha256, payload] = found
    if (!belongsTo({ accountId, companyId }, tenant) || payload === null) return null
    if (!isIntact(payload, sha256)) {
      throw new StoreFailure('rejected', `the bytes of event ${id} no longer match their digest`)
    }
    return payload
  }

  return {
    watermark: () => pool.use((connection: Connection) => readWatermark(connection)),
    async find(id, tenant) {
      const found = await byId<EventCells>(SELECT, id)
      const event = found && storedEvent(found)
      return event && belongsTo(event, tenant) ? event : null
    },
    payload: intactPayload,
    async payloadFields(id, tenant) {
      const payload = await intactPayload(id, tenant)
      return payload && payloadFields(payload, nextTurn)
    },
    revisions: async (eventId, afterId, limit) =>
      (await cells<EventCells>(SELECT_REVISIONS, [eventId, afterId, limit])).map(storedEvent),
    async indexEntry(event) {
      const row = await one(SELECT_ENTRY, [event.companyId, event.accountId, event.id])
      return row && indexEntry(row)
    },
    async repeats(event): Promise<Repeats | null> {
      const row = await one(SELECT_REPEATS, [event.companyId, event.id])
      if (!row) return null
      return {
        resends: row.resends as number,
        revisions: row.revisions as number,
        lastSeenAt: row.last_seen_at as number,
      }
    },
    async conversation(tenant, channelRef) {
      const key = conversationKeys.of(tenant, channelRef)
      const row = await one(SELECT_CONVERSATION, [tenant.companyId, tenant.accountId, key])
      return row && conversation(row, tenant, row.channel_ref as string)
    },
  }
}
