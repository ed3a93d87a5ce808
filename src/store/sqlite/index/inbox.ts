// Reads the inbox on SQLite, on a connection that sees committed rows only.

import type { DatabaseSync } from 'node:sqlite'
import type { Conversation } from '../../../model/conversation.ts'
import { createDedupeDigest } from '../../../model/dedupe.ts'
import { accessPathOf, type FoundIds, type IdPage, pageOfIds, SCAN_ROWS } from '../../../model/event-list.ts'
import type { Tenant } from '../../../model/principal.ts'
import { type Search, type SpanQuery, search, spanQueryFor } from '../../../model/text-search.ts'
import type { Coverage, EventFilter, EventPage, EventPosition, InboxReader, ListedEvent } from '../../contract/inbox.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { conversation, indexEntry } from '../../rows.ts'
import { readSequence } from '../journal/sequence.ts'
import { type Condition, conditionsOf, rangeOf } from './inbox-filters.ts'
import { findInState, stateCondition, stateViewOf } from './inbox-states.ts'
import { readCursors } from './indexing.ts'

const SELECT_EVENT = `SELECT ${EVENT_COLUMNS} FROM events WHERE id = ? AND company_id = ? AND account_id = ?`
const SELECT_ENTRY = `SELECT conversation_id, contact_name, contact_email, message_type, snippet, warnings, unindexed
  FROM event_index WHERE event_id = ? AND company_id = ? AND account_id = ?`
const SELECT_HIGHEST = `SELECT event_id FROM event_index WHERE company_id = ? AND account_id = ? AND event_id < ?
  ORDER BY event_id DESC LIMIT 1`
/** Words begin with the tenant, so a search cannot match those of others. */
const SEARCH =
  'SELECT rowid AS event_id FROM event_words WHERE event_words MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ? + 0'
const SELECT_SOURCE = 'SELECT event_id FROM dedupe WHERE company_id = ? AND digest = ?'
const SELECT_REVISION_IDS = `SELECT id AS event_id FROM events WHERE revises = ? AND kind = 'revision' AND company_id = ?
  AND account_id = ? AND id < ? ORDER BY id DESC LIMIT ? + 0`
const SELECT_REVISIONS = `SELECT id AS event_id FROM events WHERE revises = ? AND kind = 'revision' AND company_id = ?
  AND account_id = ? AND id > ? ORDER BY id LIMIT ? + 0`
const SELECT_CONVERSATION_ID = `SELECT id FROM conversations WHERE company_id = ? AND account_id = ? AND channel_ref = ?`
const CONVERSATION_COLUMNS = `channel_ref, id, event_count, first_received_at, last_event_id, last_received_at,
  first_contact_name, first_contact_email, last_contact_name, last_contact_email, last_snippet`
const SELECT_CONVERSATIONS = `SELECT ${CONVERSATION_COLUMNS} FROM conversations
  WHERE company_id = ? AND account_id = ? AND last_event_id < ? ORDER BY last_event_id DESC LIMIT ? + 0`
/** A conversation has the id of its first event, whose channel_ref is the key. */
const SELECT_CONVERSATION = `SELECT ${CONVERSATION_COLUMNS} FROM conversations
  WHERE company_id = ?1 AND account_id = ?2 AND id = ?3 AND channel_ref = (
    SELECT e.channel_ref FROM events e WHERE e.id = ?3 AND e.company_id = ?1 AND e.account_id = ?2)`
const SELECT_CONVERSATION_EVENTS = `SELECT event_id FROM event_index INDEXED BY events_by_conversation WHERE company_id = ? AND account_id = ?
  AND conversation_id = ? AND event_id > ? ORDER BY event_id LIMIT ? + 0`

const NEWEST = Number.MAX_SAFE_INTEGER

export function createInboxReader(db: DatabaseSync, dedupeKey: Uint8Array): InboxReader {
  const digest = createDedupeDigest(dedupeKey)

  const idsOf = (sql: string, ...args: readonly (string | number | Uint8Array)[]): number[] =>
    db
      .prepare(sql)
      .all(...args)
      .map((row) => row.event_id as number)

  const load = ({ companyId, accountId }: Tenant, ids: readonly number[]): ListedEvent[] => {
    const selectEvent = db.prepare(SELECT_EVENT)
    selectEvent.setReturnArrays(true)
    const selectEntry = db.prepare(SELECT_ENTRY)
    return ids.flatMap((id) => {
      const event = selectEvent.get(id, companyId, accountId) as unknown as EventCells | undefined
      const entry = selectEntry.get(id, companyId, accountId)
      return event && entry ? [{ event: storedEvent(event), entry: indexEntry(entry) }] : []
    })
  }

  const runQuery = ({ spans, below, limit }: SpanQuery): number[] => idsOf(SEARCH, matchText(spans), below, limit)

  /** Runs a search to its end. Between two queries the event loop takes in messages. */
  const findWords = async (wanted: Search): Promise<FoundIds> => {
    const { companyId, accountId } = wanted.tenant
    const course = search(wanted)
    let asked = course.next()
    while (!asked.done) {
      const question = asked.value
      if (typeof question !== 'number') await othersTurn()
      asked = course.next(
        typeof question === 'number' ? idsOf(SELECT_HIGHEST, companyId, accountId, question) : runQuery(question),
      )
    }
    return asked.value
  }

  /** The event of a source_ref and its revisions, which all have higher ids. */
  const findSource = ({ companyId, accountId }: Tenant, first: number, below: number, limit: number): FoundIds => {
    const ids = idsOf(SELECT_REVISION_IDS, first, companyId, accountId, below, limit)
    if (ids.length === limit) return { ids, searchedDownTo: ids.at(-1)! }
    return { ids: first < below ? [...ids, first] : ids, searchedDownTo: null }
  }

  const firstOf = (tenant: Tenant, sourceRef: string): number | null =>
    idsOf(SELECT_SOURCE, tenant.companyId, digest(tenant, 'ref', sourceRef))[0] ?? null

  const matching = (tenant: Tenant, conditions: readonly Condition[], ids: readonly number[]): number[] => {
    const where = conditions.map(({ sql }) => ` AND ${sql}`).join('')
    const select = db.prepare(
      `SELECT 1 FROM event_index AS listed WHERE company_id = ? AND account_id = ? AND event_id = ?${where}`,
    )
    const values = conditions.flatMap((condition) => condition.values)
    return ids.filter((id) => select.get(tenant.companyId, tenant.accountId, id, ...values) !== undefined)
  }

  const pageByRange = (
    tenant: Tenant,
    filter: EventFilter,
    conditions: readonly Condition[],
    conversationId: number | null,
    after: EventPosition | null,
    limit: number,
  ): { readonly ids: number[]; readonly next: EventPosition | null; readonly partial: boolean } => {
    const range = rangeOf(tenant, filter, conversationId, after)
    const from = `FROM ${range.table} WHERE ${range.where} ORDER BY ${range.order}`
    const where = conditions.map(({ sql }) => sql).join(' AND ')
    const rows =
      where === ''
        ? db.prepare(`SELECT event_id, received_at ${from} LIMIT ? + 0`).all(...range.values, limit + 1)
        : db
            .prepare(
              `SELECT event_id, received_at FROM (SELECT * ${from} LIMIT ? + 0) AS listed WHERE ${where} LIMIT ? + 0`,
            )
            .all(...range.values, SCAN_ROWS, ...conditions.flatMap(({ values }) => values), limit + 1)
    const ids = rows.slice(0, limit).map((row) => row.event_id as number)
    if (rows.length > limit) return { ids, next: positionOf(rows[limit - 1]!), partial: false }
    if (where === '') return { ids, next: null, partial: false }
    const edge = db.prepare(`SELECT event_id, received_at ${from} LIMIT 1 OFFSET ?`).get(...range.values, SCAN_ROWS - 1)
    return { ids, next: edge ? positionOf(edge) : null, partial: edge !== undefined }
  }

  const events = async (
    tenant: Tenant,
    filter: EventFilter,
    after: EventPosition | null,
    limit: number,
  ): Promise<EventPage> => {
    const path = accessPathOf(filter)
    const conversationId = filter.channelRef === undefined ? null : conversationOf(tenant, filter.channelRef)
    if (filter.channelRef !== undefined && conversationId === null) return NOTHING
    const state = filter.state === undefined ? null : stateViewOf(db, tenant, filter.state)
    if (filter.state !== undefined && (state === null || filter.kind === 'revision')) return NOTHING
    const rest = conditionsOf(filter, path, conversationId)
    const conditions = state === null ? rest : [...rest, stateCondition(state)]
    if (path !== 'source' && path !== 'words' && path !== 'state') {
      const { ids, ...place } = pageByRange(tenant, filter, conditions, conversationId, after, limit)
      return { events: load(tenant, ids), ...place }
    }
    const first = path === 'source' ? firstOf(tenant, filter.sourceRef!) : null
    if (path === 'source' && first === null) return NOTHING
    const wordsLeft = path === 'source' ? filter.words : undefined
    const page: IdPage = await pageOfIds({
      below: after?.id ?? NEWEST,
      limit,
      filtered: (path === 'state' ? rest : conditions).length > 0 || wordsLeft !== undefined,
      find: async (below, many) => {
        await othersTurn()
        if (path === 'state') return findInState(db, state!, below, many)
        return first === null
          ? findWords({ tenant, words: filter.words!, below, limit: many })
          : findSource(tenant, first, below, many)
      },
      matching: (ids) => {
        const matched = matching(tenant, conditions, ids)
        return wordsLeft ? matched.filter((id) => runQuery(spanQueryFor(tenant, wordsLeft, id))[0] === id) : matched
      },
    })
    const next = page.next === null ? null : { id: page.next, receivedAt: null }
    return { events: load(tenant, page.ids), next, partial: page.partial }
  }

  const conversationOf = ({ companyId, accountId }: Tenant, channelRef: string): number | null => {
    const row = db.prepare(SELECT_CONVERSATION_ID).get(companyId, accountId, channelRef)
    return row ? (row.id as number) : null
  }

  return {
    events,
    coverage: async (): Promise<Coverage> => {
      const covered = readCursors(db)
      return {
        newest: { events: readSequence(db, 'events'), resends: readSequence(db, 'resends') },
        covered: { events: covered.events, resends: covered.resends, words: covered.words },
      }
    },
    revisions: async (tenant, eventId, afterId, limit): Promise<ListedEvent[]> =>
      load(tenant, idsOf(SELECT_REVISIONS, eventId, tenant.companyId, tenant.accountId, afterId, limit)),
    conversations: async (tenant, beforeEventId, limit): Promise<Conversation[]> =>
      db
        .prepare(SELECT_CONVERSATIONS)
        .all(tenant.companyId, tenant.accountId, beforeEventId, limit)
        .map((row) => conversation(row, tenant, row.channel_ref as string)),
    conversation: async (tenant, id): Promise<Conversation | null> => {
      const row = db.prepare(SELECT_CONVERSATION).get(tenant.companyId, tenant.accountId, id)
      return row ? conversation(row, tenant, row.channel_ref as string) : null
    },
    conversationEvents: async (tenant, id, afterId, limit): Promise<ListedEvent[]> =>
      load(tenant, idsOf(SELECT_CONVERSATION_EVENTS, tenant.companyId, tenant.accountId, id, afterId, limit)),
  }
}

/** Reads run on the main thread, which also takes messages in: long reads yield to the event loop between their parts. */
const othersTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const NOTHING: EventPage = { events: [], next: null, partial: false }

function positionOf(row: Record<string, unknown>): EventPosition {
  return { id: row.event_id as number, receivedAt: row.received_at as number }
}

/** Words hold letters and digits only, so a quoted word contains no FTS5 syntax. */
function matchText(spans: readonly (readonly string[])[]): string {
  return spans.map((words) => `(${words.map((word) => `"${word}"*`).join(' AND ')})`).join(' OR ')
}
