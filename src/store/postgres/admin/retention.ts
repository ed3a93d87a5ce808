// Retention on PostgreSQL: rules, and the rows of the journal and of processing that a step removes.

import { createIdentity, createMintedDigest } from '../../../model/dedupe.ts'
import { derivedKey } from '../../../model/derived-key.ts'
import { createConversationKeys, createErasedDigest } from '../../../model/erasure.ts'
import { planForget } from '../../../model/processing-forget.ts'
import {
  type PurgeDeliveries,
  type PurgePosition,
  type PurgePlan,
  type PurgeQuestions,
  type PurgeRequest,
  type PurgeRow,
  type PurgeStep,
  planRetention,
} from '../../../model/retention-plan.ts'
import type { RetentionKind } from '../../../model/retention.ts'
import type { AgedKind, RetentionStore } from '../../contract/retention.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { RETENTION_RULE_COLUMNS, retentionRule, retentionRuleValues } from '../../rows.ts'
import { bigints, byteas, texts } from '../connection/binary-array.ts'
import type { Connection } from '../connection/connection.ts'
import { LOCKS } from '../connection/locks.ts'
import type { Pool } from '../connection/pool.ts'
import { retryTransaction } from '../connection/retry-transaction.ts'
import { followPurges } from '../index/index-purges.ts'
import { runPlan } from '../processing/processing-rows.ts'

const SELECT_RULES = `SELECT ${RETENTION_RULE_COLUMNS} FROM intray.retention_rules ORDER BY company_id, account_id`
const SET_RULE = `INSERT INTO intray.retention_rules (${RETENTION_RULE_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (company_id, account_id) DO UPDATE SET events = excluded.events, refusals = excluded.refusals,
    history = excluded.history, unprocessed = excluded.unprocessed`
/** Where the rows of a kind begin with their tenant, and a condition that lets an index serve it. */
const TENANT_SOURCES: Readonly<Record<RetentionKind, readonly [table: string, always: string]>> = {
  events: ['intray.event_index', ''],
  refusals: ['intray.refusals', ''],
  history: ['intray.delivery_history', 'AND number >= 0'],
}
const OLD: Readonly<Record<AgedKind, string>> = {
  refusals:
    'FROM intray.refusals WHERE company_id = $1 AND account_id = $2 AND received_at < $3 ORDER BY received_at LIMIT $4',
  history: `FROM intray.delivery_history WHERE company_id = $1 AND account_id = $2 AND at < $3 AND number >= 0 ORDER BY at LIMIT $4`,
}
const TIMES: Readonly<Record<AgedKind, string>> = { refusals: 'received_at', history: 'at' }
/** Skips rows that somebody changes now: the next round finds them. */
const DELETE_OLD: Readonly<Record<AgedKind, string>> = {
  refusals: `DELETE FROM intray.refusals WHERE ctid = ANY (ARRAY(SELECT ctid ${OLD.refusals} FOR UPDATE SKIP LOCKED))`,
  history: `DELETE FROM intray.delivery_history WHERE ctid = ANY (ARRAY(SELECT ctid ${OLD.history} FOR UPDATE SKIP LOCKED))`,
}

const OF_TENANT = 'company_id = $1 AND account_id = $2'
const LOCK_SUBSCRIPTIONS = `SELECT id FROM intray.subscriptions WHERE ${OF_TENANT} ORDER BY id FOR NO KEY UPDATE`
const SELECT_DUE = `SELECT event_id AS id, received_at AS "receivedAt" FROM intray.event_index
  WHERE ${OF_TENANT} AND (received_at, event_id) > ($3, $4) AND received_at < $5 ORDER BY received_at, event_id LIMIT $6`
const SELECT_EVENTS = `SELECT ${EVENT_COLUMNS} FROM intray.events WHERE id = ANY ($3::bigint[]) AND ${OF_TENANT}`
const SELECT_ENTRIES = `SELECT event_id, kind, conversation_id FROM intray.event_index
  WHERE ${OF_TENANT} AND event_id = ANY ($3::bigint[])`
const SELECT_LOWEST = `SELECT revises, min(id) AS id FROM intray.events WHERE revises = ANY ($3::bigint[]) AND ${OF_TENANT}
  GROUP BY revises`
/** In the order in which an append locks them. */
const LOCK_KEYS = `SELECT 1 FROM intray.dedupe WHERE company_id = $1 AND digest = ANY ($2::bytea[])
  ORDER BY company_id, digest FOR NO KEY UPDATE`
/** An append locks the first event before it stores a revision. */
const LOCK_FIRSTS = `SELECT 1 FROM intray.events WHERE id = ANY ($3::bigint[]) AND ${OF_TENANT} ORDER BY id FOR UPDATE`
const SELECT_NEWEST = `SELECT revises, max(id) AS id FROM intray.events WHERE revises = ANY ($3::bigint[]) AND ${OF_TENANT}
  GROUP BY revises`
const SELECT_REVISIONS = `SELECT r.* FROM unnest($3::bigint[]) AS f (id) CROSS JOIN LATERAL (
    SELECT ${EVENT_COLUMNS} FROM intray.events WHERE revises = f.id AND ${OF_TENANT} ORDER BY revises DESC, id DESC LIMIT $4) r`
const SELECT_MINTED = 'SELECT event_id FROM intray.dedupe WHERE company_id = $1 AND digest = ANY ($2::bytea[])'
const SELECT_SUBSCRIPTIONS = `SELECT id, enqueued_up_to AS "enqueuedUpTo" FROM intray.subscriptions
  WHERE ${OF_TENANT} AND deleted_at IS NULL`
const SELECT_DELIVERIES = `SELECT event_id AS "eventId", subscription, state, lease_expires_at AS "leaseExpiresAt"
  FROM intray.deliveries WHERE event_id = ANY ($3::bigint[]) AND ${OF_TENANT}`
const OF_EVENTS = `WHERE event_id = ANY ($3::bigint[]) AND ${OF_TENANT}`
const DELETE_DELIVERIES = `DELETE FROM intray.deliveries ${OF_EVENTS}`
const DELETE_HISTORY = `DELETE FROM intray.delivery_history ${OF_EVENTS}`
const DELETE_EVENTS = `DELETE FROM intray.events WHERE id = ANY ($3::bigint[]) AND ${OF_TENANT}`
const DELETE_RESENDS = 'DELETE FROM intray.resends WHERE event_id = ANY ($2::bigint[]) AND company_id = $1'
const HIDE_BYTES = `UPDATE intray.dedupe d SET sha256 = k.bytes
  FROM (SELECT unnest($2::bigint[]) AS event_id, unnest($3::bytea[]) AS digest, unnest($4::bytea[]) AS bytes) k
  WHERE d.company_id = $1 AND d.digest = k.digest AND d.event_id = k.event_id`
const KEEP_CONVERSATIONS = `INSERT INTO intray.conversation_ids (company_id, account_id, channel_key, id)
  SELECT $1, $2, unnest($3::text[]), unnest($4::bigint[]) ON CONFLICT DO NOTHING`
const NOTE_PURGES = `INSERT INTO intray.purges (company_id, account_id, event_id) SELECT $1, $2, unnest($3::bigint[])`

const NO_KEY = new Uint8Array()
/** Entries that one step removes from the index. */
export const FOLLOW_ROWS = 200

type Answers = { readonly [N in keyof PurgeQuestions]: (ask: PurgeQuestions[N][0]) => Promise<PurgeQuestions[N][1]> }

export function createRetentionStore(pool: Pool, dedupeKey: Uint8Array): RetentionStore {
  const identityOf = createIdentity(dedupeKey)
  const erasedDigest = createErasedDigest(dedupeKey)
  const mintedDigest = createMintedDigest()
  const conversationKeys = createConversationKeys(dedupeKey)

  /** The dedupe keys whose digest of bytes is replaced. */
  const keysOf = (rows: readonly PurgeRow[]) => {
    const named = rows.filter(
      ({ event }) => event.kind === 'event' && (event.sourceRef !== null || event.idempotencyKey !== null),
    )
    return named.map(({ event }) => ({
      id: event.id,
      digest: Buffer.from(identityOf(event, NO_KEY)),
      bytes: erasedDigest(event.sha256),
    }))
  }

  function answersFor(connection: Connection, { tenant, now }: PurgeRequest): Answers {
    const { companyId, accountId } = tenant
    const key = [companyId, accountId] as const

    const rowsOf = async (cells: readonly EventCells[]): Promise<PurgeRow[]> => {
      const events = cells.map(storedEvent)
      if (events.length === 0) return []
      const found = await connection.query<{ event_id: number; kind: string; conversation_id: number | null }>(
        SELECT_ENTRIES,
        [...key, bigints(events.map(({ id }) => id))],
      )
      const entries = new Map(
        found.map((row) => [row.event_id, { isEvent: row.kind === 'event', conversationId: row.conversation_id }]),
      )
      return events.map((event) => ({ event, entry: entries.get(event.id) ?? null }))
    }
    const read = async (ids: readonly number[]) =>
      rowsOf(await connection.rows<EventCells>(SELECT_EVENTS, [...key, bigints(ids)]))

    return {
      due: async ({ after, before, limit }) => {
        const { receivedAt, id } = after ?? { receivedAt: -1, id: 0 }
        return connection.query<PurgePosition>(SELECT_DUE, [...key, receivedAt, id, before, limit])
      },
      rows: ({ ids }) => read(ids),
      lowestRevisions: async ({ firstIds }) => {
        const rows = await connection.query<{ revises: number; id: number }>(SELECT_LOWEST, [...key, bigints(firstIds)])
        return new Map(rows.map(({ revises, id }) => [revises, id]))
      },
      lock: async ({ rows, firstIds }) => {
        const digests = keysOf(rows).map(({ digest }) => digest)
        await connection.query(LOCK_KEYS, [companyId, byteas(digests)])
        await connection.query(LOCK_FIRSTS, [...key, bigints(rows.map(({ event }) => event.id))])
        const found = await connection.query<{ revises: number; id: number }>(SELECT_NEWEST, [
          ...key,
          bigints(firstIds),
        ])
        return new Map(found.map(({ revises, id }) => [revises, id]))
      },
      revisions: async ({ firstIds, limit }) =>
        rowsOf(await connection.rows<EventCells>(SELECT_REVISIONS, [...key, bigints(firstIds), limit])),
      promoted: async ({ revisionIds }) => {
        const minted = revisionIds.map((id) => Buffer.from(mintedDigest(derivedKey('promotion', tenant, id))))
        const found = await connection.query<{ event_id: number }>(SELECT_MINTED, [companyId, byteas(minted)])
        return read(found.map((row) => row.event_id))
      },
      deliveries: async ({ ids }) => ({
        subscriptions: await connection.query<PurgeDeliveries['subscriptions'][number]>(SELECT_SUBSCRIPTIONS, key),
        deliveries: await connection.query<PurgeDeliveries['deliveries'][number]>(SELECT_DELIVERIES, [
          ...key,
          bigints(ids),
        ]),
      }),
      remove: async ({ rows, firstIds }) => {
        const ids = rows.map(({ event }) => event.id)
        const subscriptions = await connection.query<{ id: number }>(SELECT_SUBSCRIPTIONS, key)
        for (const { id } of subscriptions) await runPlan(planForget(ids, now), connection, [...key, id])
        const keys = keysOf(rows)
        const conversations = new Map<string, number>()
        for (const { event, entry } of rows) {
          const channel = conversationKeys.ofRow(event)
          if (channel !== null && entry && entry.conversationId !== null)
            conversations.set(channel, entry.conversationId)
        }
        const ofIds = [...key, bigints(ids)]
        connection.send(HIDE_BYTES, [
          companyId,
          bigints(keys.map(({ id }) => id)),
          byteas(keys.map(({ digest }) => digest)),
          byteas(keys.map(({ bytes }) => bytes)),
        ])
        connection.send(KEEP_CONVERSATIONS, [
          ...key,
          texts(Array.from(conversations.keys())),
          bigints(Array.from(conversations.values())),
        ])
        connection.send(DELETE_EVENTS, ofIds)
        // Of subscriptions that were deleted: the others have been told.
        connection.send(DELETE_DELIVERIES, ofIds)
        connection.send(DELETE_HISTORY, ofIds)
        connection.send(DELETE_RESENDS, [companyId, bigints(firstIds)])
        connection.send(NOTE_PURGES, ofIds)
      },
    }
  }

  return {
    rules: async () => (await pool.use((connection) => connection.query(SELECT_RULES))).map(retentionRule),
    setRule: (rule) =>
      pool.use(async (connection) => {
        await connection.query(SET_RULE, retentionRuleValues(rule))
      }),
    tenants: async (kind, after, limit) => {
      const [table, always] = TENANT_SOURCES[kind]
      const next = (place: string) => `(SELECT company_id, account_id FROM ${table}
        WHERE (company_id, account_id) > (${place}) ${always} ORDER BY company_id, account_id LIMIT 1)`
      const rows = await pool.use((connection) =>
        connection.query<{ company_id: number; account_id: number }>(
          `WITH RECURSIVE tenants AS (${next('$1, $2')} UNION ALL
            SELECT n.* FROM tenants t CROSS JOIN LATERAL ${next('t.company_id, t.account_id')} n)
          SELECT company_id, account_id FROM tenants LIMIT $3`,
          [after?.companyId ?? 0, after?.accountId ?? 0, limit],
        ),
      )
      return rows.map((row) => ({ companyId: row.company_id, accountId: row.account_id }))
    },
    purgeStep: (request) =>
      retryTransaction(pool, async (connection) => {
        if (!request.dryRun) {
          // One node at a time.
          await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.retention)
          // No claim enqueues events meanwhile: it would not see that they go.
          await connection.query(LOCK_SUBSCRIPTIONS, [request.tenant.companyId, request.tenant.accountId])
        }
        return runPurge(planRetention(request), answersFor(connection, request))
      }),
    deleteOld: (kind, { companyId, accountId }, before, limit) =>
      pool.use((connection) => connection.execute(DELETE_OLD[kind], [companyId, accountId, before, limit])),
    countOld: async (kind, { companyId, accountId }, before, limit) => {
      const sql = `SELECT count(*) AS count, min(at) AS oldest FROM (SELECT ${TIMES[kind]} AS at ${OLD[kind]}) found`
      const [row] = await pool.use((connection) =>
        connection.query<{ count: number; oldest: number | null }>(sql, [companyId, accountId, before, limit]),
      )
      return row!
    },
    followPurges: () => pool.use((connection) => followPurges(connection, FOLLOW_ROWS)),
  }
}

async function runPurge(plan: PurgePlan<PurgeStep>, answers: Answers): Promise<PurgeStep> {
  let step = plan.next()
  while (!step.done) {
    const { name, ask } = step.value
    step = plan.next(await (answers[name] as (ask: unknown) => Promise<unknown>)(ask))
  }
  return step.value
}
