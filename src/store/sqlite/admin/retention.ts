// Retention on SQLite: rules, and the rows of the journal and of processing that a step removes.

import type { DatabaseSync } from 'node:sqlite'
import { createIdentity, createMintedDigest } from '../../../model/dedupe.ts'
import { derivedKey } from '../../../model/derived-key.ts'
import { createConversationKeys, createErasedDigest } from '../../../model/erasure.ts'
import type { Tenant } from '../../../model/principal.ts'
import { planForget } from '../../../model/processing-forget.ts'
import {
  type PurgeDeliveries,
  type PurgePlan,
  type PurgePosition,
  type PurgeQuestions,
  type PurgeRequest,
  type PurgeRow,
  type PurgeStep,
  planRetention,
} from '../../../model/retention-plan.ts'
import type { RetentionKind, RetentionRule } from '../../../model/retention.ts'
import type { AgedKind } from '../../contract/retention.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { RETENTION_RULE_COLUMNS, retentionRule, retentionRuleValues } from '../../rows.ts'
import { inTransaction } from '../connection.ts'
import { prepareAnswers, runPlan } from '../processing/processing-rows.ts'
import { readMeta } from '../schema.ts'

const SELECT_RULES = `SELECT ${RETENTION_RULE_COLUMNS} FROM retention_rules ORDER BY company_id, account_id`
const SET_RULE = `INSERT INTO retention_rules (${RETENTION_RULE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET events = excluded.events, refusals = excluded.refusals, history = excluded.history,
    unprocessed = excluded.unprocessed`
/** Where the rows of a kind begin with their tenant. */
const TENANT_SOURCES: Readonly<Record<RetentionKind, string>> = {
  events: 'event_index',
  refusals: 'refusals INDEXED BY refusals_by_age',
  history: 'delivery_history INDEXED BY delivery_history_by_age',
}
const OLD_REFUSALS =
  'FROM refusals INDEXED BY refusals_by_age WHERE company_id = ? AND account_id = ? AND received_at < ?'
const OLD_HISTORY = `FROM delivery_history INDEXED BY delivery_history_by_age WHERE company_id = ? AND account_id = ? AND at < ?
  AND number >= 0`
const HISTORY_KEY = 'event_id, company_id, account_id, subscription, number'
const DELETE_OLD: Readonly<Record<AgedKind, string>> = {
  refusals: `DELETE FROM refusals WHERE id IN (SELECT id ${OLD_REFUSALS} ORDER BY received_at LIMIT ? + 0)`,
  history: `DELETE FROM delivery_history WHERE (${HISTORY_KEY}) IN (SELECT ${HISTORY_KEY} ${OLD_HISTORY} ORDER BY at LIMIT ? + 0)`,
}
const COUNT_OLD: Readonly<Record<AgedKind, string>> = {
  refusals: `SELECT count(*) AS count, min(at) AS oldest FROM (SELECT received_at AS at ${OLD_REFUSALS} ORDER BY received_at LIMIT ? + 0) AS listed`,
  history: `SELECT count(*) AS count, min(at) AS oldest FROM (SELECT at ${OLD_HISTORY} ORDER BY at LIMIT ? + 0) AS listed`,
}

const OF_TENANT = 'company_id = ? AND account_id = ?'
const SELECT_DUE = `SELECT event_id AS id, received_at AS receivedAt FROM event_index INDEXED BY events_by_time
  WHERE ${OF_TENANT} AND (received_at, event_id) > (?, ?) AND received_at < ? ORDER BY received_at, event_id LIMIT ? + 0`
const SELECT_EVENT = `SELECT ${EVENT_COLUMNS} FROM events WHERE id = ? AND ${OF_TENANT}`
const SELECT_ENTRY = `SELECT kind, conversation_id FROM event_index WHERE event_id = ? AND ${OF_TENANT}`
const SELECT_LOWEST = 'SELECT min(id) AS id FROM events WHERE revises = ?'
const SELECT_NEWEST = 'SELECT id FROM events WHERE revises = ? ORDER BY id DESC LIMIT 1'
const SELECT_REVISIONS = `SELECT ${EVENT_COLUMNS} FROM events WHERE revises = ? ORDER BY id DESC LIMIT ? + 0`
const SELECT_MINTED = 'SELECT event_id FROM dedupe WHERE company_id = ? AND digest = ?'
const SELECT_SUBSCRIPTIONS = `SELECT id, enqueued_up_to AS enqueuedUpTo FROM subscriptions WHERE ${OF_TENANT} AND deleted_at IS NULL`
const SELECT_DELIVERIES = `SELECT event_id AS eventId, subscription, state, lease_expires_at AS leaseExpiresAt FROM deliveries
  WHERE event_id = ? AND ${OF_TENANT}`
const DELETE_EVENT = 'DELETE FROM events WHERE id = ?'
const DELETE_RESENDS = 'DELETE FROM resends WHERE event_id = ?'
const DELETE_DELIVERIES = `DELETE FROM deliveries WHERE event_id = ? AND ${OF_TENANT}`
const DELETE_HISTORY = `DELETE FROM delivery_history WHERE event_id = ? AND ${OF_TENANT}`
const HIDE_BYTES = 'UPDATE dedupe SET sha256 = ? WHERE company_id = ? AND digest = ? AND event_id = ?'
const KEEP_CONVERSATION = `INSERT INTO conversation_ids (company_id, account_id, channel_key, id) VALUES (?, ?, ?, ?)
  ON CONFLICT DO NOTHING`
const NOTE_PURGE = 'INSERT INTO purges (company_id, account_id, event_id) VALUES (?, ?, ?)'
const FORGET_PURGES = 'DELETE FROM purges WHERE id <= ?'

const NO_KEY = new Uint8Array()

type Answers = { readonly [N in keyof PurgeQuestions]: (ask: PurgeQuestions[N][0]) => PurgeQuestions[N][1] }

export function prepareRetentionWrites(db: DatabaseSync) {
  const dedupeKey = readMeta(db, 'dedupe_key')
  const identityOf = createIdentity(dedupeKey)
  const erasedDigest = createErasedDigest(dedupeKey)
  const mintedDigest = createMintedDigest()
  const conversationKeys = createConversationKeys(dedupeKey)
  const processing = prepareAnswers(db)

  function answersFor({ tenant, now }: PurgeRequest): Answers {
    const key = [tenant.companyId, tenant.accountId] as const

    const rowOf = (cells: EventCells): PurgeRow => {
      const event = storedEvent(cells)
      const entry = db.prepare(SELECT_ENTRY).get(event.id, ...key)
      const conversationId = entry?.conversation_id as number | null
      return { event, entry: entry ? { isEvent: entry.kind === 'event', conversationId } : null }
    }
    const rowsOf = (ids: readonly number[]): PurgeRow[] => {
      const select = db.prepare(SELECT_EVENT)
      select.setReturnArrays(true)
      return ids.flatMap((id) => {
        const cells = select.get(id, ...key) as unknown as EventCells | undefined
        return cells ? [rowOf(cells)] : []
      })
    }
    const subscriptions = () =>
      db.prepare(SELECT_SUBSCRIPTIONS).all(...key) as unknown as PurgeDeliveries['subscriptions']

    function remove({ event, entry }: PurgeRow): void {
      const { id } = event
      if (event.kind === 'event' && (event.sourceRef !== null || event.idempotencyKey !== null)) {
        db.prepare(HIDE_BYTES).run(erasedDigest(event.sha256), tenant.companyId, identityOf(event, NO_KEY), id)
      }
      const channel = conversationKeys.ofRow(event)
      const conversationId = entry?.conversationId ?? null
      if (channel !== null && conversationId !== null) {
        db.prepare(KEEP_CONVERSATION).run(...key, channel, conversationId)
      }
      db.prepare(DELETE_EVENT).run(id)
      // Of subscriptions that were deleted: the others have been told.
      db.prepare(DELETE_DELIVERIES).run(id, ...key)
      db.prepare(DELETE_HISTORY).run(id, ...key)
      db.prepare(NOTE_PURGE).run(...key, id)
    }

    return {
      due: ({ after, before, limit }) => {
        const { receivedAt, id } = after ?? { receivedAt: -1, id: 0 }
        return db.prepare(SELECT_DUE).all(...key, receivedAt, id, before, limit) as unknown as PurgePosition[]
      },
      rows: ({ ids }) => rowsOf(ids),
      lowestRevisions: ({ firstIds }) => {
        const select = db.prepare(SELECT_LOWEST)
        return new Map(firstIds.map((id) => [id, Number(select.get(id)?.id)]))
      },
      // There is one writer: nothing needs a lock.
      lock: ({ firstIds }) => {
        const select = db.prepare(SELECT_NEWEST)
        return new Map(firstIds.flatMap((id) => select.all(id).map((row) => [id, row.id as number] as const)))
      },
      revisions: ({ firstIds, limit }) => {
        const select = db.prepare(SELECT_REVISIONS)
        select.setReturnArrays(true)
        return firstIds.flatMap((id) => (select.all(id, limit) as unknown as EventCells[]).map(rowOf))
      },
      promoted: ({ revisionIds }) => {
        const select = db.prepare(SELECT_MINTED)
        const minted = revisionIds.map((id) => mintedDigest(derivedKey('promotion', tenant, id)).slice())
        return rowsOf(
          minted.flatMap((digest) => (select.get(tenant.companyId, digest)?.event_id as number | undefined) ?? []),
        )
      },
      deliveries: ({ ids }) => {
        const select = db.prepare(SELECT_DELIVERIES)
        const deliveries = ids.flatMap((id) => select.all(id, ...key)) as unknown as PurgeDeliveries['deliveries']
        return { subscriptions: subscriptions(), deliveries }
      },
      remove: ({ rows, firstIds }) => {
        const ids = rows.map(({ event }) => event.id)
        for (const { id } of subscriptions()) runPlan(planForget(ids, now), processing, [...key, id])
        for (const row of rows) remove(row)
        for (const id of firstIds) db.prepare(DELETE_RESENDS).run(id)
      },
    }
  }

  return {
    setRule: (rule: RetentionRule): void => {
      db.prepare(SET_RULE).run(...retentionRuleValues(rule))
    },
    purgeStep: (request: PurgeRequest): PurgeStep =>
      inTransaction(db, () => runPurge(planRetention(request), answersFor(request))),
    deleteOld: (kind: AgedKind, { companyId, accountId }: Tenant, before: number, limit: number): number =>
      Number(db.prepare(DELETE_OLD[kind]).run(companyId, accountId, before, limit).changes),
    forgetPurges: (upTo: number): void => {
      db.prepare(FORGET_PURGES).run(upTo)
    },
  }
}

export function prepareRetentionReads(db: DatabaseSync) {
  return {
    rules: (): RetentionRule[] => db.prepare(SELECT_RULES).all().map(retentionRule),
    tenants(kind: RetentionKind, after: Tenant | null, limit: number): Tenant[] {
      const always = kind === 'history' ? ' AND number >= 0' : ''
      const select = db.prepare(`SELECT company_id AS companyId, account_id AS accountId FROM ${TENANT_SOURCES[kind]}
        WHERE (company_id, account_id) > (?, ?)${always} ORDER BY company_id, account_id LIMIT 1`)
      const found: Tenant[] = []
      for (let last = after ?? { companyId: 0, accountId: 0 }; found.length < limit; ) {
        const next = select.get(last.companyId, last.accountId) as unknown as Tenant | undefined
        if (!next) break
        found.push((last = { ...next }))
      }
      return found
    },
    countOld(kind: AgedKind, { companyId, accountId }: Tenant, before: number, limit: number) {
      const row = db.prepare(COUNT_OLD[kind]).get(companyId, accountId, before, limit)!
      return { count: row.count as number, oldest: row.oldest as number | null }
    },
  }
}

function runPurge(plan: PurgePlan<PurgeStep>, answers: Answers): PurgeStep {
  let step = plan.next()
  while (!step.done) {
    const { name, ask } = step.value
    step = plan.next((answers[name] as (ask: unknown) => unknown)(ask))
  }
  return step.value
}
