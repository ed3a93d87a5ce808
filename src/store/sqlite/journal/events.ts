// Reads the journal and the index by id, on a connection that sees committed rows only.

import type { DatabaseSync } from 'node:sqlite'
import type { Conversation } from '../../../model/conversation.ts'
import type { EventIndexEntry, Repeats, StoredEvent } from '../../../model/event.ts'
import { createConversationKeys } from '../../../model/erasure.ts'
import { payloadFields, isIntact } from '../../../model/payload.ts'
import type { Tenant } from '../../../model/principal.ts'
import { StoreFailure } from '../../contract/failure.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import type { Turn } from '../threads/reader-scheduler.ts'
import { belongsTo, conversation, indexEntry } from '../../rows.ts'

const SELECT = `SELECT ${EVENT_COLUMNS} FROM events WHERE id = ?`
const SELECT_PAYLOAD = 'SELECT account_id, company_id, sha256, payload FROM events WHERE id = ?'
const SELECT_REVISIONS = `SELECT ${EVENT_COLUMNS} FROM events WHERE revises = ? AND id > ?
  ORDER BY id LIMIT ? + 0`
const SELECT_ENTRY = `SELECT conversation_id, contact_name, contact_email, message_type, snippet, warnings, unindexed
  FROM event_index WHERE company_id = ? AND account_id = ? AND event_id = ?`
const SELECT_REPEATS = 'SELECT resends, revisions, last_seen_at FROM repeats WHERE company_id = ? AND event_id = ?'
const SELECT_CONVERSATION = `SELECT channel_ref, id, event_count, first_received_at, last_event_id, last_received_at,
    first_contact_name, first_contact_email, last_contact_name, last_contact_email, last_snippet
  FROM conversations WHERE company_id = ? AND account_id = ? AND channel_key = ?`

export function prepareEventReads(db: DatabaseSync, dedupeKey: Uint8Array) {
  const conversationKeys = createConversationKeys(dedupeKey)
  const cellsOf = (sql: string, ...args: readonly number[]): EventCells[] => {
    const select = db.prepare(sql)
    select.setReturnArrays(true)
    return select.all(...args) as unknown as EventCells[]
  }
  const findPayload = (id: number, tenant?: Tenant) => {
    const row = db.prepare(SELECT_PAYLOAD).get(id)
    const owner = { accountId: row?.account_id as number, companyId: row?.company_id as number }
    return row && belongsTo(owner, tenant) ? row : null
  }
  const intactPayload = (id: number, tenant?: Tenant): Uint8Array | null => {
    const row = findPayload(id, tenant)
    if (!row || row.payload === null) return null
    const payload = row.payload as Uint8Array
    if (!isIntact(payload, row.sha256 as Uint8Array)) {
      throw new StoreFailure('rejected', `the bytes of event ${id} no longer match their digest`)
    }
    return payload
  }
  return {
    find(id: number, tenant?: Tenant): StoredEvent | null {
      const event = cellsOf(SELECT, id).map(storedEvent)[0]
      return event && belongsTo(event, tenant) ? event : null
    },
    payload: intactPayload,
    async payloadFields(turn: Turn, id: number, tenant: Tenant): Promise<Uint8Array | null> {
      const payload = intactPayload(id, tenant)
      return payload && payloadFields(payload, turn)
    },
    revisions: (eventId: number, afterId: number, limit: number): StoredEvent[] =>
      cellsOf(SELECT_REVISIONS, eventId, afterId, limit).map(storedEvent),
    indexEntry(event: StoredEvent): EventIndexEntry | null {
      const row = db.prepare(SELECT_ENTRY).get(event.companyId, event.accountId, event.id)
      return row ? indexEntry(row) : null
    },
    repeats(event: StoredEvent): Repeats | null {
      const row = db.prepare(SELECT_REPEATS).get(event.companyId, event.id)
      if (!row) return null
      return {
        resends: row.resends as number,
        revisions: row.revisions as number,
        lastSeenAt: row.last_seen_at as number,
      }
    },
    conversation(tenant: Tenant, channelRef: string): Conversation | null {
      const row = db
        .prepare(SELECT_CONVERSATION)
        .get(tenant.companyId, tenant.accountId, conversationKeys.of(tenant, channelRef))
      return row ? conversation(row, tenant, row.channel_ref as string) : null
    },
  }
}
