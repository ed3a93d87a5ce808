// Claims and their outcomes on PostgreSQL. A claim's transaction waits for no lane while it holds one; enqueueing new
// events must wait for lanes, and starts without any.

import { type ConversationKeys, createConversationKeys } from '../../../model/erasure.ts'
import type { Tenant } from '../../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION } from '../../../model/processing.ts'
import { ClaimProgress, type Grant, planEnqueue } from '../../../model/processing-enqueue.ts'
import {
  type ClaimOrder,
  planAck,
  planClaim,
  planExtend,
  planRelease,
  planRequeue,
} from '../../../model/processing-plan.ts'
import type { ClaimRequest, DeadFilter, ProcessingStore, QueueName, RequeueRequest } from '../../contract/processing.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Pool } from '../connection/pool.ts'
import { claimAround, UNSIZED_EVENTS } from '../../claim-around.ts'
import { storeFailure } from '../connection/failure.ts'
import { retryTransaction } from '../connection/retry-transaction.ts'
import { readClaimed, readCounts, readHistory, readLastErrors, readReady, readStates } from './processing-reads.ts'
import { type Queue, runPlan } from './processing-rows.ts'
import type { Sizes } from './processing-statements.ts'
import { ADD_DEFAULT, createSubscription, deleteSubscription, readSubscriptions } from './subscriptions.ts'

const SELECT_ID: Statement = {
  name: 'intray_subscription_id',
  text: `SELECT id FROM intray.subscriptions WHERE company_id = $1 AND account_id = $2 AND name = $3
    AND deleted_at IS NULL`,
}
const SELECT_CONVERSATION: Statement = {
  name: 'intray_conversation_id',
  text: 'SELECT id FROM intray.conversations WHERE company_id = $1 AND account_id = $2 AND channel_key = $3',
}
const DEAD = `FROM intray.deliveries WHERE company_id = $1 AND account_id = $2 AND subscription = $3
  AND state >= 'dead' AND state <= 'dead' AND entries >= 0 AND state <> 'done'
  AND ($4::bigint IS NULL OR lane = $4) AND settled_at >= $5 AND settled_at < $6`
const SETTLED = `FROM intray.deliveries WHERE company_id = $1 AND account_id = $2 AND subscription = $3
  AND event_id >= $4 AND event_id <= $5 AND state IN ('done', 'dead')`
/** Events that are replayed in one transaction. */
const REPLAY_ROWS = 200

export function createProcessing(pool: Pool, dedupeKey: Uint8Array): ProcessingStore {
  const conversationKeys = createConversationKeys(dedupeKey)
  const inQueue = <T>(name: QueueName, work: (connection: Connection, queue: Queue) => Promise<T>): Promise<T | null> =>
    retryTransaction(pool, async (connection) => {
      const queue = await queueOf(connection, name)
      return queue && work(connection, queue)
    })

  /** The queue, and the lane if the request names a conversation. Undefined: no such conversation (yet). */
  async function placeOf(request: ClaimRequest): Promise<{ queue: Queue | null; lane: number | null | undefined }> {
    return pool.use(async (connection) => {
      const queue = await queueOf(connection, request)
      const lane =
        request.channelRef === null
          ? null
          : await laneOf(connection, conversationKeys, request.tenant, request.channelRef)
      return { queue, lane }
    })
  }

  async function lease(request: ClaimRequest): Promise<Grant[] | null> {
    const { now, keyId, limit, maxBytes, maxAttempts, tenant } = request
    const { queue, lane } = await placeOf(request)
    if (!queue) return null
    if (lane === undefined) return []
    const held = { id: request.leaseId, expiresAt: request.leaseExpiresAt, ordered: request.ordered, keyId }
    const progress = new ClaimProgress({ now, lease: held, lane, limit, maxBytes, maxAttempts })
    const orderOf = (sizes: Sizes) => (sizes === 'sized' ? progress.order : fewOf(progress.order))
    const enqueue = (connection: Connection, sizes: Sizes) => {
      if (queue[2] === 0) connection.send(ADD_DEFAULT, [tenant.companyId, tenant.accountId, now])
      return runPlan(planEnqueue(progress.enqueueRows, orderOf(sizes)), connection, queue, sizes)
    }
    const [claimed, enqueued] = await evenUnsized(pool, async (connection, sizes) => {
      const first = await runPlan(planClaim(orderOf(sizes)), connection, queue, sizes)
      if (!first.foundNoLane) return [first, null] as const
      // A lane that the claim waited for may no longer be ready: it is not returned, but still locked.
      connection.startOver()
      return [first, await enqueue(connection, sizes)] as const
    })
    progress.add(claimed)
    if (enqueued) progress.addEnqueued(enqueued)
    while (progress.enqueueRows > 0) progress.addEnqueued(await evenUnsized(pool, enqueue))
    const claimAgain = (connection: Connection, sizes: Sizes) =>
      runPlan(planClaim(orderOf(sizes)), connection, queue, sizes)
    if (progress.mayClaimAgain) progress.add(await evenUnsized(pool, claimAgain))
    return progress.grants
  }

  const release: ProcessingStore['release'] = (request) =>
    inQueue(request, (connection, queue) => runPlan(planRelease(request.items, request), connection, queue))

  return {
    claim: (request) =>
      claimAround(request, {
        grant: lease,
        read: (grants) => pool.use((connection) => readClaimed(connection, grants, request)),
        release,
      }),
    ack: (request) =>
      inQueue(request, (connection, queue) => runPlan(planAck(request.items, request.now), connection, queue)),
    extend: (request) =>
      inQueue(request, (connection, queue) =>
        runPlan(planExtend(request.items, request.leaseExpiresAt, request.now), connection, queue),
      ),
    release,
    requeue: (request) =>
      inQueue(request, async (connection, queue) => {
        const ids = request.filter.ids ?? (await deadIds(connection, queue, conversationKeys, request))
        return (await runPlan(planRequeue(ids, request.now, request.keyId), connection, queue)).length
      }),
    countDead: (name, filter) =>
      pool.use(async (connection) => {
        const queue = await queueOf(connection, name)
        if (!queue) return null
        const values = await deadValues(connection, queue, conversationKeys, name.tenant, filter)
        if (!values) return 0
        const [row] = await connection.query<{ count: number }>(`SELECT count(*) AS count ${DEAD}`, values)
        return row!.count
      }),
    countSettled: (name, { fromId, toId }) =>
      pool.use(async (connection) => {
        const queue = await queueOf(connection, name)
        if (!queue) return null
        const values = [...queue, fromId, toId]
        const [row] = await connection.query<{ count: number }>(`SELECT count(*) AS count ${SETTLED}`, values)
        return row!.count
      }),
    replay: ({ range, limit, now, keyId, ...name }) =>
      inQueue(name, async (connection, queue) => {
        const rows = await connection.query<{ event_id: number }>(
          `SELECT event_id ${SETTLED} ORDER BY event_id LIMIT $6`,
          [...queue, range.fromId, range.toId, Math.min(limit, REPLAY_ROWS)],
        )
        const ids = rows.map((row) => row.event_id)
        const replayed = await runPlan(planRequeue(ids, now, keyId, ['done', 'dead']), connection, queue)
        return { count: replayed.length, lastId: ids.at(-1) ?? null }
      }),
    ready: (queues, now) => pool.use((connection) => readReady(connection, queues, now)),
    subscriptions: (tenant) => pool.use((connection) => readSubscriptions(connection, tenant)),
    createSubscription: (name, from, at, options) => createSubscription(pool, name, from, at, options),
    deleteSubscription: (name, at) => deleteSubscription(pool, name, at),
    history: (tenant, eventId) => pool.use((connection) => readHistory(connection, tenant, eventId)),
    counts: (name, ids) =>
      pool.use(async (connection) => {
        const queue = await queueOf(connection, name)
        return queue ? readCounts(connection, queue, ids) : new Map()
      }),
    states: (name, ids, now) =>
      pool.use(async (connection) => {
        const queue = await queueOf(connection, name)
        return queue ? readStates(connection, queue, ids, now) : new Map()
      }),
    lastErrors: (name, ids) =>
      pool.use(async (connection) => {
        const queue = await queueOf(connection, name)
        return queue ? readLastErrors(connection, queue, ids) : new Map()
      }),
  }
}

/** If a damaged page hides the size of an event, the transaction is repeated without sizes: what it grants says the rest. */
async function evenUnsized<T>(pool: Pool, work: (connection: Connection, sizes: Sizes) => Promise<T>): Promise<T> {
  try {
    return await retryTransaction(pool, (connection) => work(connection, 'sized'))
  } catch (error) {
    if (storeFailure(error).kind !== 'damaged') throw error
    return retryTransaction(pool, (connection) => work(connection, 'unsized'))
  }
}

const fewOf = (order: ClaimOrder): ClaimOrder => ({ ...order, limit: Math.min(order.limit, UNSIZED_EVENTS) })

export async function queueOf(connection: Connection, { tenant, subscription }: QueueName): Promise<Queue | null> {
  const { companyId, accountId } = tenant
  if (subscription === DEFAULT_SUBSCRIPTION) return [companyId, accountId, 0]
  const [row] = await connection.query<{ id: number }>(SELECT_ID, [companyId, accountId, subscription])
  return row ? [companyId, accountId, row.id] : null
}

async function laneOf(connection: Connection, keys: ConversationKeys, tenant: Tenant, channelRef: string) {
  const values = [tenant.companyId, tenant.accountId, keys.of(tenant, channelRef)]
  const [row] = await connection.query<{ id: number }>(SELECT_CONVERSATION, values)
  return row?.id
}

async function deadIds(
  connection: Connection,
  queue: Queue,
  keys: ConversationKeys,
  request: RequeueRequest,
): Promise<number[]> {
  const values = await deadValues(connection, queue, keys, request.tenant, request.filter)
  if (!values) return []
  const rows = await connection.query<{ event_id: number }>(
    `SELECT event_id ${DEAD} ORDER BY state, event_id LIMIT ${request.limit}`,
    values,
  )
  return rows.map((row) => row.event_id)
}

async function deadValues(
  connection: Connection,
  queue: Queue,
  keys: ConversationKeys,
  tenant: Tenant,
  filter: DeadFilter,
) {
  const lane = filter.channelRef === null ? null : await laneOf(connection, keys, tenant, filter.channelRef)
  if (lane === undefined) return null
  return [...queue, lane, filter.deadAfter ?? 0, filter.deadBefore ?? Number.MAX_SAFE_INTEGER] as const
}
