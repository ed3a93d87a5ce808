// Processing reads on SQLite: the events of a claim, whether a claim is worthwhile, and the deliveries of an event.

import type { DatabaseSync } from 'node:sqlite'
import type { Tenant } from '../../../model/principal.ts'
import type { DeliveryState } from '../../../model/processing.ts'
import type { Grant } from '../../../model/processing-enqueue.ts'
import type { ClaimedEvent, ClaimRequest, DeliveryRecord, QueueName, Readiness } from '../../contract/processing.ts'
import { EVENT_AND_PAYLOAD_COLUMNS, EVENT_COLUMNS, type EventCells } from '../../event-columns.ts'
import type { ReadGrants } from '../../claim-around.ts'
import { claimedEvent, historyEntry, lastErrors, type Row } from '../../rows.ts'
import { unlessDamaged } from '../connection.ts'
import { STATE_NOW } from '../index/inbox-states.ts'
import type { Turn } from '../threads/reader-scheduler.ts'
import { queueOf } from './processing.ts'
import { readSubscription, readSubscriptions } from './subscriptions.ts'

const OF_QUEUE = 'company_id = ? AND account_id = ? AND subscription = ?'
const SELECT_EVENT = `SELECT ${EVENT_AND_PAYLOAD_COLUMNS} FROM events WHERE id = ?`
const SELECT_WITHOUT_PAYLOAD = `SELECT ${EVENT_COLUMNS}, NULL FROM events WHERE id = ?`
const FIRST_READY = `SELECT ready_at AS at FROM lanes INDEXED BY lanes_ready WHERE ${OF_QUEUE} AND ready_at IS NOT NULL
  ORDER BY ready_at LIMIT 1`
const FIRST_OPEN = `SELECT open_at AS at FROM lanes INDEXED BY lanes_open WHERE ${OF_QUEUE} AND open_at IS NOT NULL
  ORDER BY open_at LIMIT 1`
const HAS_NEWS = `SELECT 1 FROM event_index WHERE company_id = ? AND account_id = ? AND event_id > ?
  AND event_id <= (SELECT position FROM index_cursors WHERE source = 'events') LIMIT 1`
const SELECT_DELIVERY = `SELECT state, attempts, available_at, lease_expires_at, key_id, settled_at FROM deliveries
  WHERE ${OF_QUEUE} AND event_id = ?`
const SELECT_STATE = `SELECT ${STATE_NOW} AS state FROM deliveries WHERE ${OF_QUEUE} AND event_id = ?`
const SELECT_COUNTS = `SELECT done_count, dead_count FROM lanes WHERE ${OF_QUEUE} AND lane = ?`
const SELECT_HISTORY = `SELECT event_id, number, at, what, state, attempts, key_id, error FROM delivery_history
  WHERE ${OF_QUEUE} AND event_id = ? ORDER BY number`
const SELECT_LAST_ENTRY = `SELECT event_id, what, error FROM delivery_history WHERE ${OF_QUEUE} AND event_id = ?
  ORDER BY number DESC LIMIT 1`

/** What one step reads: payloads, with a price for each row, and queues. */
const STEP_BYTES = 256 * 1024
const EVENT_BYTES = 2048
const STEP_QUEUES = 100

export function prepareProcessingReads(db: DatabaseSync) {
  const selectEvent = db.prepare(SELECT_EVENT)
  selectEvent.setReturnArrays(true)
  const selectWithoutPayload = db.prepare(SELECT_WITHOUT_PAYLOAD)
  selectWithoutPayload.setReturnArrays(true)
  const firstReady = db.prepare(FIRST_READY)
  const firstOpen = db.prepare(FIRST_OPEN)
  const hasNews = db.prepare(HAS_NEWS)
  const selectDelivery = db.prepare(SELECT_DELIVERY)
  const selectState = db.prepare(SELECT_STATE)
  const selectLastEntry = db.prepare(SELECT_LAST_ENTRY)

  function readiness(queue: QueueName & { readonly ordered: boolean }, now: number): Readiness {
    const subscription = readSubscription(db, queue)
    const key = queueOf(db, queue)
    // The subscription is gone: a claim reports it.
    if (!subscription || !key) return { ready: true, at: null }
    if (hasNews.get(key[0], key[1], subscription.enqueuedUpTo)) return { ready: true, at: null }
    const times = [firstReady.get(...key)?.at, queue.ordered ? null : firstOpen.get(...key)?.at]
    const at = Math.min(...times.map((time) => (time as number | null | undefined) ?? Number.MAX_SAFE_INTEGER))
    return { ready: at <= now, at: at === Number.MAX_SAFE_INTEGER ? null : at }
  }

  return (turn: Turn) => ({
    async claimed(grants: readonly Grant[], request: ClaimRequest): Promise<ReadGrants> {
      const claimed: ClaimedEvent[] = []
      const lost: number[] = []
      let bytes = 0
      for (const grant of grants) {
        if (bytes > STEP_BYTES) {
          await turn()
          bytes = 0
        }
        // Of an event whose payload is damaged, the rest is handed out.
        const cells = (unlessDamaged(() => selectEvent.get(grant.eventId)) ??
          unlessDamaged(() => selectWithoutPayload.get(grant.eventId))) as unknown as EventCells | undefined
        // Damaged, or purged since: the claim was answered late, or nobody waited for it.
        if (!cells) {
          lost.push(grant.eventId)
          continue
        }
        const one = await claimedEvent(cells, grant, request, turn)
        bytes += EVENT_BYTES + one.event.size
        claimed.push(one)
      }
      return { claimed, lost }
    },

    async ready(
      queues: readonly (QueueName & { readonly ordered: boolean })[],
      now: number,
    ): Promise<readonly Readiness[]> {
      const found: Readiness[] = []
      for (const [n, queue] of queues.entries()) {
        if (n > 0 && n % STEP_QUEUES === 0) await turn()
        found.push(readiness(queue, now))
      }
      return found
    },

    history: (tenant: Tenant, eventId: number): DeliveryRecord[] =>
      readSubscriptions(db, tenant).flatMap(({ name, enqueuedUpTo }): DeliveryRecord[] => {
        const key = queueOf(db, { tenant, subscription: name })
        if (!key) return []
        const row = selectDelivery.get(...key, eventId)
        // Skipped: the event is older than the subscription.
        if (!row && enqueuedUpTo >= eventId) return []
        return [
          {
            subscription: name,
            state: (row?.state ?? 'pending') as DeliveryState,
            attempts: (row?.attempts ?? 0) as number,
            availableAt: (row?.available_at ?? null) as number | null,
            leaseExpiresAt: (row?.lease_expires_at ?? null) as number | null,
            keyId: (row?.key_id ?? null) as string | null,
            settledAt: (row?.settled_at ?? null) as number | null,
            history: db
              .prepare(SELECT_HISTORY)
              .all(...key, eventId)
              .map(historyEntry),
          },
        ]
      }),

    counts(queue: QueueName, lanes: readonly number[]): Map<number, { done: number; dead: number }> {
      const key = queueOf(db, queue)
      const counts = new Map<number, { done: number; dead: number }>()
      const select = db.prepare(SELECT_COUNTS)
      for (const lane of key ? lanes : []) {
        const row = select.get(...key!, lane)
        if (row) counts.set(lane, { done: row.done_count as number, dead: row.dead_count as number })
      }
      return counts
    },

    states(queue: QueueName, ids: readonly number[], now: number): Map<number, DeliveryState> {
      const key = queueOf(db, queue)
      const states = new Map<number, DeliveryState>()
      for (const id of key ? ids : []) {
        const row = selectState.get(now, ...key!, id)
        if (row) states.set(id, row.state as DeliveryState)
      }
      return states
    },

    lastErrors(queue: QueueName, ids: readonly number[]): Map<number, string> {
      const key = queueOf(db, queue)
      const rows = key ? ids.map((id): Row | undefined => selectLastEntry.get(...key, id)) : []
      return lastErrors(rows.filter((row) => row !== undefined))
    },
  })
}
