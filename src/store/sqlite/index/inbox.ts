// Reads the inbox on SQLite, on a connection that sees committed rows only.

import type { DatabaseSync } from 'node:sqlite'
import type { Conversation } from '../../../model/conversation.ts'
import { createDedupeDigest } from '../../../model/dedupe.ts'
import { createConversationKeys } from '../../../model/erasure.ts'
import type { StoredEvent } from '../../../model/event.ts'
import {
  accessPathOf,
  chunkOf,
  type FoundIds,
  type IdPage,
  pageOfIds,
  SCAN_ROWS,
  SEARCH_MS,
} from '../../../model/event-list.ts'
import type { Tenant } from '../../../model/principal.ts'
import { type Search, type SpanQuery, search, spanQueryFor } from '../../../model/text-search.ts'
import { type IdGap, withoutGaps } from '../../../model/id-gaps.ts'
import type { Coverage, EventFilter, EventPage, EventPosition, ListedEvent } from '../../contract/inbox.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { conversation, indexEntry } from '../../rows.ts'
import { unlessDamaged } from '../connection.ts'
import { readSequence } from '../journal/sequence.ts'
import type { Turn } from '../threads/reader-scheduler.ts'
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
const SELECT_REVISION_IDS = `SELECT id AS event_id FROM events WHERE revises = ? AND company_id = ?
  AND account_id = ? AND id < ? ORDER BY id DESC LIMIT ? + 0`
const SELECT_REVISIONS = `SELECT id AS event_id FROM events WHERE revises = ? AND company_id = ?
  AND account_id = ? AND id > ? ORDER BY id LIMIT ? + 0`
const SELECT_CONVERSATION_ID = `SELECT id FROM conversations WHERE company_id = ? AND account_id = ? AND channel_key = ?`
const CONVERSATION_COLUMNS = `channel_ref, id, event_count, first_received_at, last_event_id, last_received_at,
  first_contact_name, first_contact_email, last_contact_name, last_contact_email, last_snippet`
const SELECT_CONVERSATIONS = `SELECT ${CONVERSATION_COLUMNS} FROM conversations
  WHERE company_id = ? AND account_id = ? AND last_event_id < ? ORDER BY last_event_id DESC LIMIT ? + 0`
const SELECT_CHANNEL_KEY = 'SELECT channel_key FROM conversation_ids WHERE company_id = ? AND account_id = ? AND id = ?'
/** A conversation has the id of its first event, whose channel_ref gives the key; a purged one left its key. */
const SELECT_CHANNEL = `SELECT channel_ref AS channelRef, erased_at AS erasedAt FROM events
  WHERE id = ? AND company_id = ? AND account_id = ?`
const SELECT_CONVERSATION = `SELECT ${CONVERSATION_COLUMNS} FROM conversations
  WHERE company_id = ? AND account_id = ? AND channel_key = ? AND id = ?`
const SELECT_CONVERSATION_EVENTS = `SELECT event_id FROM event_index INDEXED BY events_by_conversation WHERE company_id = ? AND account_id = ?
  AND conversation_id = ? AND event_id > ? ORDER BY event_id LIMIT ? + 0`

type Channel = Pick<StoredEvent, 'channelRef' | 'erasedAt'>

const NEWEST = Number.MAX_SAFE_INTEGER

/** Events whose rows are read in one step, and index rows that are scanned in one. */
const STEP_EVENTS = 100
const STEP_ROWS = 2000
const ONE_SPAN = [1]

/** How far the index follows the journal: a look at four counters. */
export function readCoverage(db: DatabaseSync, gaps: readonly IdGap[]): Coverage {
  const { events, resends, words } = readCursors(db)
  return {
    newest: { events: withoutGaps(gaps, readSequence(db, 'events')), resends: readSequence(db, 'resends') },
    covered: { events: withoutGaps(gaps, events), resends, words: withoutGaps(gaps, words) },
  }
}

export function createInboxReads(db: DatabaseSync, dedupeKey: Uint8Array, nextTurn: Turn) {
  const digest = createDedupeDigest(dedupeKey)
  const conversationKeys = createConversationKeys(dedupeKey)
  /** Work of the running call, without its waits for a turn. */
  let spentMs = 0
  let since = 0
  const turn: Turn = async () => {
    spentMs += performance.now() - since
    await nextTurn()
    since = performance.now()
  }
  const isOver = () => spentMs + performance.now() - since > SEARCH_MS

  const idsOf = (sql: string, ...args: readonly (string | number | Uint8Array)[]): number[] =>
    db
      .prepare(sql)
      .all(...args)
      .map((row) => row.event_id as number)

  const load = async ({ companyId, accountId }: Tenant, ids: readonly number[]): Promise<ListedEvent[]> => {
    const selectEvent = db.prepare(SELECT_EVENT)
    selectEvent.setReturnArrays(true)
    const selectEntry = db.prepare(SELECT_ENTRY)
    const listed: ListedEvent[] = []
    for (const [n, id] of ids.entries()) {
      if (n > 0 && n % STEP_EVENTS === 0) await turn()
      // A row that a damaged page hides is left out, like one that is gone: the others are listed.
      const event = unlessDamaged(() => selectEvent.get(id, companyId, accountId)) as unknown as EventCells | undefined
      const entry = selectEntry.get(id, companyId, accountId)
      if (event && entry) listed.push({ event: storedEvent(event), entry: indexEntry(entry) })
    }
    return listed
  }

  const runQuery = ({ spans, below, limit }: SpanQuery): number[] => idsOf(SEARCH, matchText(spans), below, limit)

  /** One span of ids in each statement, since a statement cannot be interrupted. */
  const findWords = async (wanted: Omit<Search, 'spansPerQuery'>): Promise<FoundIds> => {
    const { companyId, accountId } = wanted.tenant
    const course = search({ ...wanted, spansPerQuery: ONE_SPAN })
    let asked = course.next()
    while (!asked.done) {
      const question = asked.value
      if (typeof question !== 'number') await turn()
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

  const matching = async (
    tenant: Tenant,
    conditions: readonly Condition[],
    ids: readonly number[],
  ): Promise<number[]> => {
    const where = conditions.map(({ sql }) => ` AND ${sql}`).join('')
    const select = db.prepare(
      `SELECT 1 FROM event_index AS listed WHERE company_id = ? AND account_id = ? AND event_id = ?${where}`,
    )
    const values = conditions.flatMap((condition) => condition.values)
    await turn()
    return ids.filter((id) => select.get(tenant.companyId, tenant.accountId, id, ...values) !== undefined)
  }

  /** Scans at most SCAN_ROWS rows, some of them in each step. */
  const pageByRange = async (
    tenant: Tenant,
    filter: EventFilter,
    conditions: readonly Condition[],
    conversationId: number | null,
    after: EventPosition | null,
    limit: number,
  ): Promise<{ readonly ids: number[]; readonly next: EventPosition | null; readonly partial: boolean }> => {
    const where = conditions.map(({ sql }) => sql).join(' AND ')
    const values = conditions.flatMap((condition) => condition.values)
    const found: Record<string, unknown>[] = []
    let from = after
    for (let scanned = 0; scanned < SCAN_ROWS; scanned += STEP_ROWS) {
      const range = rangeOf(tenant, filter, conversationId, from)
      const rows = `FROM ${range.table} WHERE ${range.where} ORDER BY ${range.order}`
      if (where === '') {
        found.push(...db.prepare(`SELECT event_id, received_at ${rows} LIMIT ? + 0`).all(...range.values, limit + 1))
      } else {
        const select = `SELECT event_id, received_at FROM (SELECT * ${rows} LIMIT ? + 0) AS listed WHERE ${where} LIMIT ? + 0`
        const wanted = limit + 1 - found.length
        found.push(...db.prepare(select).all(...range.values, STEP_ROWS, ...values, wanted))
      }
      const ids = found.slice(0, limit).map((row) => row.event_id as number)
      if (found.length > limit) return { ids, next: positionOf(found[limit - 1]!), partial: false }
      if (where === '') return { ids, next: null, partial: false }
      const last = `SELECT event_id, received_at ${rows} LIMIT 1 OFFSET ?`
      const edge = db.prepare(last).get(...range.values, STEP_ROWS - 1)
      if (!edge) return { ids, next: null, partial: false }
      from = positionOf(edge)
      await turn()
    }
    return { ids: found.map((row) => row.event_id as number), next: from, partial: true }
  }

  const having = async (tenant: Tenant, words: readonly string[], ids: readonly number[]): Promise<number[]> => {
    const found: number[] = []
    for (const id of ids) {
      await turn()
      if (runQuery(spanQueryFor(tenant, words, id))[0] === id) found.push(id)
    }
    return found
  }

  const events = async (
    tenant: Tenant,
    filter: EventFilter,
    after: EventPosition | null,
    limit: number,
  ): Promise<EventPage> => {
    spentMs = 0
    since = performance.now()
    const path = accessPathOf(filter)
    const conversationId = filter.channelRef === undefined ? null : conversationOf(tenant, filter.channelRef)
    if (filter.channelRef !== undefined && conversationId === null) return NOTHING
    const state = filter.state === undefined ? null : stateViewOf(db, tenant, filter.state)
    if (filter.state !== undefined && (state === null || filter.kind === 'revision')) return NOTHING
    const rest = conditionsOf(filter, path, conversationId)
    const conditions = state === null ? rest : [...rest, stateCondition(state)]
    if (path !== 'source' && path !== 'words' && path !== 'state') {
      const { ids, ...place } = await pageByRange(tenant, filter, conditions, conversationId, after, limit)
      return { events: await load(tenant, ids), ...place }
    }
    const first = path === 'source' ? firstOf(tenant, filter.sourceRef!) : null
    if (path === 'source' && first === null) return NOTHING
    const wordsLeft = path === 'source' ? filter.words : undefined
    const page: IdPage = await pageOfIds({
      below: after?.id ?? NEWEST,
      limit,
      chunk: chunkOf((path === 'state' ? rest : conditions).length > 0, wordsLeft !== undefined),
      isOver,
      find: async (below, many) => {
        await turn()
        if (path === 'state') return findInState(db, state!, below, many)
        return first === null
          ? findWords({ tenant, words: filter.words!, below, limit: many, isOver })
          : findSource(tenant, first, below, many)
      },
      matching: async (ids) => {
        const matched = await matching(tenant, conditions, ids)
        return wordsLeft ? having(tenant, wordsLeft, matched) : matched
      },
    })
    const next = page.next === null ? null : { id: page.next, receivedAt: null }
    return { events: await load(tenant, page.ids), next, partial: page.partial }
  }

  const conversationOf = (tenant: Tenant, channelRef: string): number | null => {
    const key = conversationKeys.of(tenant, channelRef)
    const row = db.prepare(SELECT_CONVERSATION_ID).get(tenant.companyId, tenant.accountId, key)
    return row ? (row.id as number) : null
  }

  return {
    events,
    revisions: (tenant: Tenant, eventId: number, afterId: number, limit: number): Promise<ListedEvent[]> =>
      load(tenant, idsOf(SELECT_REVISIONS, eventId, tenant.companyId, tenant.accountId, afterId, limit)),
    conversations: (tenant: Tenant, beforeEventId: number, limit: number): Conversation[] =>
      db
        .prepare(SELECT_CONVERSATIONS)
        .all(tenant.companyId, tenant.accountId, beforeEventId, limit)
        .map((row) => conversation(row, tenant, row.channel_ref as string)),
    conversation: (tenant: Tenant, id: number): Conversation | null => {
      const { companyId, accountId } = tenant
      const known = db.prepare(SELECT_CHANNEL_KEY).get(companyId, accountId, id)?.channel_key as string | undefined
      const channel = known ? undefined : db.prepare(SELECT_CHANNEL).get(id, companyId, accountId)
      const ofFirst = channel && conversationKeys.ofRow({ companyId, accountId, ...(channel as unknown as Channel) })
      const key = known ?? ofFirst
      const row = key ? db.prepare(SELECT_CONVERSATION).get(companyId, accountId, key, id) : undefined
      return row ? conversation(row, tenant, row.channel_ref as string) : null
    },
    conversationEvents: (tenant: Tenant, id: number, afterId: number, limit: number): Promise<ListedEvent[]> =>
      load(tenant, idsOf(SELECT_CONVERSATION_EVENTS, tenant.companyId, tenant.accountId, id, afterId, limit)),
  }
}

const NOTHING: EventPage = { events: [], next: null, partial: false }

function positionOf(row: Record<string, unknown>): EventPosition {
  return { id: row.event_id as number, receivedAt: row.received_at as number }
}

/** Words hold letters and digits only, so a quoted word contains no FTS5 syntax. */
function matchText(spans: SpanQuery['spans']): string {
  return spans
    .map((words) => `(${words.map(({ text, isWhole }) => `"${text}"${isWhole ? '' : '*'}`).join(' AND ')})`)
    .join(' OR ')
}
