// All reads whose work a caller can choose, by name: the interface between the store and its reading connection, which is in
// the server's reader thread or in a command's own process. A read that takes several statements waits for its `turn`
// between two of them.

import type { DatabaseSync } from 'node:sqlite'
import type { DeadFilter, QueueName, SettledRange } from '../contract/processing.ts'
import { prepareErasureReads } from './admin/erasures.ts'
import { prepareHookReads } from './admin/hooks.ts'
import { readMetrics } from './admin/metrics.ts'
import { prepareOperatorReads } from './admin/operators.ts'
import { findRefusal, listRefusals } from './admin/refusals.ts'
import { prepareRetentionReads } from './admin/retention.ts'
import { prepareTokenReads } from './admin/tokens.ts'
import { prepareTransferReads } from './admin/transfer.ts'
import { createInboxReads } from './index/inbox.ts'
import { prepareTrafficReads } from './index/traffic.ts'
import { prepareEventReads } from './journal/events.ts'
import { prepareFollow } from './journal/follow.ts'
import { countDead, findDead } from './processing/processing.ts'
import { prepareProcessingReads } from './processing/processing-reads.ts'
import { createJsonPages } from '../json-pages.ts'
import { countSettled, findSettled } from './processing/settled.ts'
import { readSubscriptions } from './processing/subscriptions.ts'
import { readMeta } from './schema.ts'
import type { Turn } from './threads/reader-scheduler.ts'

export function prepareReads(db: DatabaseSync) {
  const dedupeKey = readMeta(db, 'dedupe_key')
  const events = prepareEventReads(db, dedupeKey)
  const follow = prepareFollow(db)
  const hooks = prepareHookReads(db, dedupeKey)
  const tokens = prepareTokenReads(db)
  const operators = prepareOperatorReads(db)
  const traffic = prepareTrafficReads(db)
  const erasures = prepareErasureReads(db, dedupeKey)
  const transfer = prepareTransferReads(db, dedupeKey)
  const retention = prepareRetentionReads(db)
  const processingOf = prepareProcessingReads(db)

  return (turn: Turn) => {
    const inbox = createInboxReads(db, dedupeKey, turn)
    const processing = processingOf(turn)
    const pages = createJsonPages({
      inbox,
      states: processing.states,
      lastErrors: processing.lastErrors,
      counts: processing.counts,
      refusals: listRefusals.bind(null, db),
      turn,
    })
    return {
      findEvent: events.find,
      payload: events.payload,
      payloadFields: events.payloadFields.bind(null, turn),
      revisionsOf: events.revisions,
      indexEntry: events.indexEntry,
      repeats: events.repeats,
      conversationOf: events.conversation,
      listEvents: inbox.events,
      listRevisions: inbox.revisions,
      listConversations: inbox.conversations,
      conversation: inbox.conversation,
      conversationEvents: inbox.conversationEvents,
      pageOfEvents: pages.events,
      pageOfRevisions: pages.revisions,
      pageOfConversations: pages.conversations,
      pageOfConversationEvents: pages.conversationEvents,
      pageOfRefusals: pages.refusals,
      followedAfter: follow.after,
      tenantsBetween: follow.tenantsBetween,
      claimed: processing.claimed,
      ready: processing.ready,
      history: processing.history,
      counts: processing.counts,
      states: processing.states,
      lastErrors: processing.lastErrors,
      countDead: (queue: QueueName, filter: DeadFilter) => countDead(db, queue, filter, turn),
      findDead: (queue: QueueName, filter: DeadFilter, limit: number) => findDead(db, queue, filter, limit, turn),
      countSettled: (queue: QueueName, range: SettledRange) => countSettled(db, queue, range, turn),
      findSettled: (queue: QueueName, range: SettledRange, limit: number) => findSettled(db, queue, range, limit, turn),
      subscriptions: readSubscriptions.bind(null, db),
      listTokens: tokens.list,
      listTokensOf: tokens.listOf,
      listTenants: tokens.tenants,
      listHooks: hooks.list,
      storedRecipe: hooks.recipe,
      hookDeliveries: hooks.deliveries,
      listRefusals: listRefusals.bind(null, db),
      findRefusal: findRefusal.bind(null, db),
      findMinted: erasures.findMinted,
      erasureLog: erasures.log,
      unerased: erasures.unerased,
      retentionRules: retention.rules,
      retentionTenants: retention.tenants,
      countOld: retention.countOld,
      listOperators: operators.list,
      listAudit: operators.listAudit,
      trafficMinutes: traffic.minutes,
      trafficHours: traffic.hours,
      queueDepth: traffic.queueDepth,
      refusalCounts: traffic.refusalCounts,
      exportedRows: transfer.rows,
      exportedPayloads: transfer.payloads,
      heldItems: transfer.held,
      metrics: (now: number) => readMetrics(db, now),
    }
  }
}

export type Reads = ReturnType<ReturnType<typeof prepareReads>>
