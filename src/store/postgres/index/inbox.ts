// Reads the inbox on PostgreSQL. Readers see committed rows only, always on the server that accepts writes.

import { type IdGap, withoutGaps } from '../../../model/id-gaps.ts'
import { createDedupeDigest } from '../../../model/dedupe.ts'
import { createConversationKeys } from '../../../model/erasure.ts'
import type { StoredEvent } from '../../../model/event.ts'
import { accessPathOf, chunkOf, type FoundIds, pageOfIds, SCAN_ROWS, SEARCH_MS } from '../../../model/event-list.ts'
import type { Tenant } from '../../../model/principal.ts'
import { type Search, type SpanQuery, search, spanQueryFor } from '../../../model/text-search.ts'
import type { EventFilter, EventPage, EventPosition, InboxReader, ListedEvent } from '../../contract/inbox.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { conversation, indexEntry } from '../../rows.ts'
import { bigints } from '../connection/binary-array.ts'
import type { Row, Statement, Value } from '../connection/connection.ts'
import { unlessDamaged } from '../connection/failure.ts'
import type { Pool } from '../connection/pool.ts'
import { type Condition, conditionsOf, rangeOf, Values } from './inbox-filters.ts'
import { findInState, stateCondition, stateViewOf } from './inbox-states.ts'

const COVERAGE: Statement = {
  name: 'intray_coverage',
  text: `SELECT CASE WHEN e.is_called THEN e.last_value ELSE 0 END AS newest_events,
    CASE WHEN r.is_called THEN r.last_value ELSE 0 END AS newest_resends,
    (SELECT position FROM intray.index_cursors WHERE source = 'events') AS events,
    (SELECT position FROM intray.index_cursors WHERE source = 'resends') AS resends,
    (SELECT position FROM intray.index_cursors WHERE source = 'words') AS words
  FROM intray.event_ids e, intray.resend_ids r`,
}
const SELECT_EVENTS: Statement = {
  name: 'intray_listed_events',
  text: `SELECT ${EVENT_COLUMNS} FROM intray.events
  WHERE id = ANY ($1::bigint[]) AND company_id = $2 AND account_id = $3`,
}
const SELECT_ENTRIES: Statement = {
  name: 'intray_listed_entries',
  text: `SELECT event_id, conversation_id, contact_name, contact_email, message_type, snippet, warnings, unindexed
  FROM intray.event_index WHERE event_id = ANY ($1::bigint[]) AND company_id = $2 AND account_id = $3`,
}
const SELECT_HIGHEST: Statement = {
  name: 'intray_highest_below',
  text: `SELECT event_id FROM intray.event_index WHERE company_id = $1 AND account_id = $2 AND event_id < $3
  ORDER BY event_id DESC LIMIT 1`,
}
/**
 * Collects the word matches first, in a step of its own, which only the index of words can serve. The span of ids in
 * each word bounds the matches.
 */
const SEARCH: Statement = {
  name: 'intray_search',
  text: `WITH hits AS MATERIALIZED (
    SELECT company_id, account_id, event_id FROM intray.event_words WHERE words @@ $4::text::tsquery)
  SELECT event_id FROM hits WHERE company_id = $1 AND account_id = $2 AND event_id < $3
  ORDER BY event_id DESC LIMIT $5`,
}
const SELECT_SOURCE: Statement = {
  name: 'intray_source',
  text: 'SELECT event_id FROM intray.dedupe WHERE company_id = $1 AND digest = $2',
}
const SELECT_REVISION_IDS: Statement = {
  name: 'intray_revision_ids',
  text: `SELECT id AS event_id FROM intray.events WHERE company_id = $1 AND account_id = $2
    AND revises >= $3 AND (revises, id) < ($3, $4) ORDER BY revises DESC, id DESC LIMIT $5`,
}
const SELECT_REVISIONS: Statement = {
  name: 'intray_inbox_revisions',
  text: `SELECT id AS event_id FROM intray.events WHERE company_id = $1 AND account_id = $2
    AND revises <= $3 AND (revises, id) > ($3, $4) ORDER BY revises, id LIMIT $5`,
}
const SELECT_CONVERSATION_ID: Statement = {
  name: 'intray_conversation_id',
  text: 'SELECT id FROM intray.conversations WHERE company_id = $1 AND account_id = $2 AND channel_key = $3',
}
const CONVERSATION_COLUMNS = `channel_ref, id, event_count, first_received_at, last_event_id, last_received_at,
  first_contact_name, first_contact_email, last_contact_name, last_contact_email, last_snippet`
const SELECT_CONVERSATIONS: Statement = {
  name: 'intray_conversations',
  text: `SELECT ${CONVERSATION_COLUMNS} FROM intray.conversations
  WHERE company_id = $1 AND account_id = $2 AND last_event_id < $3 ORDER BY last_event_id DESC LIMIT $4`,
}
const SELECT_CHANNEL_KEY: Statement = {
  name: 'intray_channel_key_of',
  text: 'SELECT channel_key FROM intray.conversation_ids WHERE company_id = $1 AND account_id = $2 AND id = $3',
}
/** A conversation has the id of its first event, whose channel_ref gives the key; a purged one left its key. */
const SELECT_CHANNEL: Statement = {
  name: 'intray_channel_of',
  text: `SELECT channel_ref AS "channelRef", erased_at AS "erasedAt" FROM intray.events
  WHERE id = $1 AND company_id = $2 AND account_id = $3`,
}
const SELECT_CONVERSATION: Statement = {
  name: 'intray_conversation_by_id',
  text: `SELECT ${CONVERSATION_COLUMNS} FROM intray.conversations
  WHERE company_id = $1 AND account_id = $2 AND channel_key = $3 AND id = $4`,
}
const SELECT_CONVERSATION_EVENTS: Statement = {
  name: 'intray_conversation_events',
  text: `SELECT event_id FROM intray.event_index WHERE company_id = $1 AND account_id = $2
    AND conversation_id <= $3 AND (conversation_id, event_id) > ($3, $4)
  ORDER BY conversation_id, event_id LIMIT $5`,
}

/** The newest span alone, then more, since common words are found in the first; each query is a message to the server. */
const SPANS_PER_QUERY = [1, 4, 16]
/** Events read at once: the main thread decodes the rows of one answer in one turn. */
const STEP_EVENTS = 50
const NEWEST = Number.MAX_SAFE_INTEGER
type Channel = Pick<StoredEvent, 'channelRef' | 'erasedAt'>

const NOTHING: EventPage = { events: [], next: null, partial: false }

export function createInboxReader(pool: Pool, dedupeKey: Uint8Array, gaps: readonly IdGap[]): InboxReader {
  const digest = createDedupeDigest(dedupeKey)
  const conversationKeys = createConversationKeys(dedupeKey)
  const query = (statement: Statement | string, values: readonly Value[]): Promise<Row[]> =>
    pool.use((connection) => connection.query(statement, values))
  const idsOf = async (statement: Statement | string, values: readonly Value[]): Promise<number[]> =>
    (await query(statement, values)).map((row) => row.event_id as number)

  const load = async (tenant: Tenant, ids: readonly number[]): Promise<ListedEvent[]> => {
    const listed: ListedEvent[] = []
    for (let from = 0; from < ids.length; from += STEP_EVENTS)
      listed.push(...(await loadStep(tenant, ids.slice(from, from + STEP_EVENTS))))
    return listed
  }

  /** A row that a damaged page hides is left out, like one that is gone: the others are listed. */
  const loadStep = async (tenant: Tenant, ids: readonly number[]): Promise<ListedEvent[]> => {
    const together = await unlessDamaged(loadTogether(tenant, ids))
    if (together) return together
    const listed: ListedEvent[] = []
    for (const id of ids) listed.push(...((await unlessDamaged(loadTogether(tenant, [id]))) ?? []))
    return listed
  }

  const loadTogether = async ({ companyId, accountId }: Tenant, ids: readonly number[]): Promise<ListedEvent[]> => {
    const values = [bigints(ids), companyId, accountId]
    const [foundEvents, foundEntries] = await pool.use((connection) =>
      Promise.all([connection.rows<EventCells>(SELECT_EVENTS, values), connection.query(SELECT_ENTRIES, values)]),
    )
    const events = new Map(foundEvents.map(storedEvent).map((event) => [event.id, event]))
    const entries = new Map(foundEntries.map((row) => [row.event_id as number, indexEntry(row)]))
    return ids.flatMap((id) => {
      const event = events.get(id)
      const entry = entries.get(id)
      return event && entry ? [{ event, entry }] : []
    })
  }

  const runQuery = ({ companyId, accountId }: Tenant, { spans, below, limit }: SpanQuery): Promise<number[]> =>
    idsOf(SEARCH, [companyId, accountId, below, queryText(spans), limit])

  /** Runs a search to its end. */
  const findWords = async (wanted: Omit<Search, 'spansPerQuery'>): Promise<FoundIds> => {
    const { companyId, accountId } = wanted.tenant
    const course = search({ ...wanted, spansPerQuery: SPANS_PER_QUERY })
    let asked = course.next()
    while (!asked.done) {
      const question = asked.value
      asked = course.next(
        typeof question === 'number'
          ? await idsOf(SELECT_HIGHEST, [companyId, accountId, question])
          : await runQuery(wanted.tenant, question),
      )
    }
    return asked.value
  }

  /** The event of a source_ref and its revisions, which all have higher ids. */
  const findSource = async (
    { companyId, accountId }: Tenant,
    first: number,
    below: number,
    limit: number,
  ): Promise<FoundIds> => {
    const ids = await idsOf(SELECT_REVISION_IDS, [companyId, accountId, first, below, limit])
    if (ids.length === limit) return { ids, searchedDownTo: ids.at(-1)! }
    return { ids: first < below ? [...ids, first] : ids, searchedDownTo: null }
  }

  const firstOf = async (tenant: Tenant, sourceRef: string): Promise<number | null> => {
    const key = Buffer.from(digest(tenant, 'ref', sourceRef))
    return (await idsOf(SELECT_SOURCE, [tenant.companyId, key]))[0] ?? null
  }

  const matching = async (
    tenant: Tenant,
    conditions: readonly Condition[],
    ids: readonly number[],
  ): Promise<number[]> => {
    const values = new Values()
    const own = `company_id = ${values.add(tenant.companyId)} AND account_id = ${values.add(tenant.accountId)}`
    values.list.push(bigints(ids))
    const where = [own, `event_id = ANY ($${values.list.length}::bigint[])`, ...conditions.map((sql) => sql(values))]
    const found = new Set(
      await idsOf(`SELECT event_id FROM intray.event_index AS listed WHERE ${where.join(' AND ')}`, values.list),
    )
    return ids.filter((id) => found.has(id))
  }

  const pageByRange = async (
    tenant: Tenant,
    filter: EventFilter,
    conditions: readonly Condition[],
    conversationId: number | null,
    after: EventPosition | null,
    limit: number,
  ): Promise<{ readonly ids: number[]; readonly next: EventPosition | null; readonly partial: boolean }> => {
    const values = new Values()
    const range = rangeOf(tenant, filter, conversationId, after, values)
    const from = `FROM intray.event_index WHERE ${range.where} ORDER BY ${range.order}`
    const rangeValues = values.list.slice()
    const where = conditions.map((sql) => sql(values)).join(' AND ')
    const rows = await query(
      where === ''
        ? `SELECT event_id, received_at ${from} LIMIT ${limit + 1}`
        : `SELECT event_id, received_at FROM (SELECT * ${from} LIMIT ${SCAN_ROWS}) AS listed WHERE ${where} LIMIT ${limit + 1}`,
      values.list,
    )
    const ids = rows.slice(0, limit).map((row) => row.event_id as number)
    if (rows.length > limit) return { ids, next: positionOf(rows[limit - 1]!), partial: false }
    if (where === '') return { ids, next: null, partial: false }
    const [edge] = await query(`SELECT event_id, received_at ${from} LIMIT 1 OFFSET ${SCAN_ROWS - 1}`, rangeValues)
    return { ids, next: edge ? positionOf(edge) : null, partial: edge !== undefined }
  }

  return {
    async coverage() {
      const [row] = await query(COVERAGE, [])
      const at = (name: string) => withoutGaps(gaps, row![name] as number)
      return {
        newest: { events: at('newest_events'), resends: row!.newest_resends as number },
        covered: { events: at('events'), resends: row!.resends as number, words: at('words') },
      }
    },
    async events(tenant, filter, after, limit, gone) {
      const began = performance.now()
      const isOver = () => gone?.aborted === true || performance.now() - began > SEARCH_MS
      const path = accessPathOf(filter)
      const conversationId = filter.channelRef === undefined ? null : await conversationOf(tenant, filter.channelRef)
      if (filter.channelRef !== undefined && conversationId === null) return NOTHING
      const state = filter.state === undefined ? null : await stateViewOf(pool, tenant, filter.state)
      if (filter.state !== undefined && (state === null || filter.kind === 'revision')) return NOTHING
      const rest = conditionsOf(filter, path, conversationId)
      const conditions = state === null ? rest : [...rest, stateCondition(state)]
      if (path !== 'source' && path !== 'words' && path !== 'state') {
        const { ids, ...place } = await pageByRange(tenant, filter, conditions, conversationId, after, limit)
        return { events: await load(tenant, ids), ...place }
      }
      const first = path === 'source' ? await firstOf(tenant, filter.sourceRef!) : null
      if (path === 'source' && first === null) return NOTHING
      const wordsLeft = path === 'source' ? filter.words : undefined
      const page = await pageOfIds({
        below: after?.id ?? NEWEST,
        limit,
        chunk: chunkOf((path === 'state' ? rest : conditions).length > 0, wordsLeft !== undefined),
        isOver,
        find: (below, many) => {
          if (path === 'state') return findInState(pool, state!, below, many)
          return first === null
            ? findWords({ tenant, words: filter.words!, below, limit: many, isOver })
            : findSource(tenant, first, below, many)
        },
        matching: async (ids) => {
          const matched = await matching(tenant, conditions, ids)
          if (!wordsLeft) return matched
          const having: number[] = []
          for (const id of matched)
            if ((await runQuery(tenant, spanQueryFor(tenant, wordsLeft, id)))[0] === id) having.push(id)
          return having
        },
      })
      const next = page.next === null ? null : { id: page.next, receivedAt: null }
      return { events: await load(tenant, page.ids), next, partial: page.partial }
    },
    revisions: async (tenant, eventId, afterId, limit) =>
      load(tenant, await idsOf(SELECT_REVISIONS, [tenant.companyId, tenant.accountId, eventId, afterId, limit])),
    conversations: async (tenant, beforeEventId, limit) =>
      (await query(SELECT_CONVERSATIONS, [tenant.companyId, tenant.accountId, beforeEventId, limit])).map((row) =>
        conversation(row, tenant, row.channel_ref as string),
      ),
    async conversation(tenant, id) {
      const { companyId, accountId } = tenant
      const [known] = await query(SELECT_CHANNEL_KEY, [companyId, accountId, id])
      const [channel] = known ? [] : await query(SELECT_CHANNEL, [id, companyId, accountId])
      const ofFirst = channel && conversationKeys.ofRow({ companyId, accountId, ...(channel as unknown as Channel) })
      const key = known ? (known.channel_key as string) : ofFirst
      const [row] = key ? await query(SELECT_CONVERSATION, [companyId, accountId, key, id]) : []
      return row ? conversation(row, tenant, row.channel_ref as string) : null
    },
    conversationEvents: async (tenant, id, afterId, limit) =>
      load(tenant, await idsOf(SELECT_CONVERSATION_EVENTS, [tenant.companyId, tenant.accountId, id, afterId, limit])),
  }

  async function conversationOf(tenant: Tenant, channelRef: string): Promise<number | null> {
    const key = conversationKeys.of(tenant, channelRef)
    const [row] = await query(SELECT_CONVERSATION_ID, [tenant.companyId, tenant.accountId, key])
    return row ? (row.id as number) : null
  }
}

function positionOf(row: Row): EventPosition {
  return { id: row.event_id as number, receivedAt: row.received_at as number }
}

/** Words hold letters and digits only, so a quoted word contains no tsquery syntax. */
function queryText(spans: SpanQuery['spans']): string {
  return spans
    .map((words) => `(${words.map(({ text, isWhole }) => `'${text}'${isWhole ? '' : ':*'}`).join(' & ')})`)
    .join(' | ')
}
