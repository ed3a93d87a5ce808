// Claims and their outcomes on SQLite: each call is one transaction on the writer. The reader loads the claimed events
// afterwards, so that payloads do not pass through the writer.

import type { DatabaseSync } from 'node:sqlite'
import { createConversationKeys } from '../../../model/erasure.ts'
import type { Tenant } from '../../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION } from '../../../model/processing.ts'
import { ClaimProgress, type Grant, planEnqueue } from '../../../model/processing-enqueue.ts'
import {
  planAck,
  planClaim,
  planExtend,
  planRelease,
  planRequeue,
  type Settled,
} from '../../../model/processing-plan.ts'
import type {
  AckRequest,
  ClaimRequest,
  DeadFilter,
  ExtendRequest,
  QueueName,
  ReleaseRequest,
  ReplayRequest,
  RequeueRequest,
} from '../../contract/processing.ts'
import { UNSIZED_EVENTS } from '../../claim-around.ts'
import { inTransaction, isDamage } from '../connection.ts'
import { readMeta } from '../schema.ts'
import type { Turn } from '../threads/reader-scheduler.ts'
import { type Answers, prepareAnswers, type Queue, runPlan } from './processing-rows.ts'
import { ADD_DEFAULT } from './subscriptions.ts'

const SELECT_ID = `SELECT id FROM subscriptions WHERE company_id = ? AND account_id = ? AND name = ?
  AND deleted_at IS NULL`
const SELECT_CONVERSATION = 'SELECT id FROM conversations WHERE company_id = ? AND account_id = ? AND channel_key = ?'
const SELECT_DEAD = `SELECT event_id, lane, settled_at FROM deliveries INDEXED BY deliveries_by_state WHERE company_id = ?
  AND account_id = ? AND subscription = ? AND state = 'dead' AND entries >= 0 AND state <> 'done' AND event_id > ?
  ORDER BY event_id LIMIT ? + 0`
const STEP_DEAD = 1000

export function prepareProcessing(db: DatabaseSync) {
  const answers = prepareAnswers(db)
  let unsized: Answers | null = null
  const addDefault = db.prepare(ADD_DEFAULT)

  const settling = <R extends QueueName>(work: (queue: Queue, request: R) => Settled[]) => {
    return (request: R): Settled[] | null =>
      inTransaction(db, () => {
        const queue = queueOf(db, request)
        return queue && work(queue, request)
      })
  }

  function claim(request: ClaimRequest, answers: Answers): Grant[] | null {
    const { tenant, now, keyId, limit, maxBytes, maxAttempts } = request
    if (request.subscription === DEFAULT_SUBSCRIPTION) addDefault.run(tenant.companyId, tenant.accountId, now)
    const queue = queueOf(db, request)
    if (!queue) return null
    const lane = request.channelRef === null ? null : laneOf(db, tenant, request.channelRef)
    if (lane === undefined) return []
    const lease = { id: request.leaseId, expiresAt: request.leaseExpiresAt, ordered: request.ordered, keyId }
    const progress = new ClaimProgress({ now, lease, lane, limit, maxBytes, maxAttempts })
    progress.add(runPlan(planClaim(progress.order), answers, queue))
    while (progress.enqueueRows > 0) {
      progress.addEnqueued(runPlan(planEnqueue(progress.enqueueRows, progress.order), answers, queue))
    }
    if (progress.mayClaimAgain) progress.add(runPlan(planClaim(progress.order), answers, queue))
    return progress.grants
  }

  return {
    /** If a damaged page hides the size of an event, the claim is repeated without sizes: what it grants says the rest. */
    claim: (request: ClaimRequest): Grant[] | null => {
      try {
        return inTransaction(db, () => claim(request, answers))
      } catch (error) {
        if (!isDamage(error)) throw error
        unsized ??= prepareAnswers(db, false)
        const few = { ...request, limit: Math.min(request.limit, UNSIZED_EVENTS) }
        return inTransaction(db, () => claim(few, unsized!))
      }
    },
    ack: settling((queue, { items, now }: AckRequest) => runPlan(planAck(items, now), answers, queue)),
    extend: settling((queue, { items, leaseExpiresAt, now }: ExtendRequest) =>
      runPlan(planExtend(items, leaseExpiresAt, now), answers, queue),
    ),
    release: settling((queue, { items, ...rules }: ReleaseRequest) =>
      runPlan(planRelease(items, rules), answers, queue),
    ),
    requeue: (request: RequeueRequest): number | null =>
      inTransaction(db, () => {
        const queue = queueOf(db, request)
        if (!queue) return null
        return runPlan(planRequeue(request.filter.ids ?? [], request.now, request.keyId), answers, queue).length
      }),
    replay: ({ ids, now, keyId, ...name }: Omit<ReplayRequest, 'range' | 'limit'> & { ids: readonly number[] }) =>
      inTransaction(db, () => {
        const queue = queueOf(db, name)
        return queue && runPlan(planRequeue(ids, now, keyId, ['done', 'dead']), answers, queue).length
      }),
  }
}

/** Undefined if the conversation does not exist (yet). */
function laneOf(db: DatabaseSync, { companyId, accountId }: Tenant, channelRef: string): number | undefined {
  const key = createConversationKeys(readMeta(db, 'dedupe_key')).of({ companyId, accountId }, channelRef)
  return db.prepare(SELECT_CONVERSATION).get(companyId, accountId, key)?.id as number | undefined
}

export function queueOf(db: DatabaseSync, { tenant, subscription }: QueueName): Queue | null {
  const { companyId, accountId } = tenant
  if (subscription === DEFAULT_SUBSCRIPTION) return [companyId, accountId, 0]
  const row = db.prepare(SELECT_ID).get(companyId, accountId, subscription)
  return row ? [companyId, accountId, row.id as number] : null
}

/** The ids of dead events that match, the oldest first. All dead events may have to be looked at: one page in each step. */
async function* deadIds(
  db: DatabaseSync,
  queue: Queue,
  tenant: Tenant,
  filter: DeadFilter,
  turn: Turn,
): AsyncGenerator<number> {
  const lane = filter.channelRef === null ? null : laneOf(db, tenant, filter.channelRef)
  if (lane === undefined) return
  const { deadAfter, deadBefore } = filter
  const select = db.prepare(SELECT_DEAD)
  const isWanted = (row: Record<string, unknown>): boolean =>
    (lane === null || row.lane === lane) &&
    (row.settled_at as number) >= (deadAfter ?? 0) &&
    (row.settled_at as number) < (deadBefore ?? Number.MAX_SAFE_INTEGER)
  for (let after = 0; ; await turn()) {
    const rows = select.all(...queue, after, STEP_DEAD)
    for (const row of rows) if (isWanted(row)) yield row.event_id as number
    if (rows.length < STEP_DEAD) return
    after = rows.at(-1)!.event_id as number
  }
}

/** Null: no such subscription. */
export async function findDead(
  db: DatabaseSync,
  name: QueueName,
  filter: DeadFilter,
  limit: number,
  turn: Turn,
): Promise<number[] | null> {
  const queue = queueOf(db, name)
  if (!queue) return null
  const found: number[] = []
  if (limit === 0) return found
  for await (const id of deadIds(db, queue, name.tenant, filter, turn)) if (found.push(id) === limit) break
  return found
}

/** Null: no such subscription. */
export async function countDead(
  db: DatabaseSync,
  name: QueueName,
  filter: DeadFilter,
  turn: Turn,
): Promise<number | null> {
  const queue = queueOf(db, name)
  if (!queue) return null
  let count = 0
  for await (const _ of deadIds(db, queue, name.tenant, filter, turn)) count += 1
  return count
}
