// Claims, acks, releases and subscriptions of processors: waits for events, mints lease ids and adds the time. The store
// carries out each change in one transaction, a long ack or extend in several: its items do not depend on each other.

import type { Tenant } from '../model/principal.ts'
import {
  DEFAULT_SUBSCRIPTION,
  type DeliveryState,
  type OwnRetryRules,
  type RetryRules,
  retryRules,
} from '../model/processing.ts'
import type { LeaseItem, ReleaseItem, Settled } from '../model/processing-plan.ts'
import type { Clock } from '../runtime/clock.ts'
import { newUuid } from '../runtime/id.ts'
import type { Service } from '../runtime/service.ts'
import type {
  ClaimedEvent,
  DeadFilter,
  DeliveryRecord,
  ProcessingStore,
  QueueName,
  Replayed,
  SettledRange,
  Subscription,
} from '../store/contract/processing.ts'
import { LongPolls, type ClaimQueue } from './long-poll.ts'

/** Payloads in one answer; one larger event is handed out alone. */
const MAX_CLAIM_BYTES = 8 * 1024 * 1024

/** As many as one claim hands out. More in one transaction would delay everybody else's. */
const ITEMS_PER_PART = 200

/** A damaged event is handed out without its bytes: a claim that failed instead would block its conversation for ever. */
const DAMAGED = 'its bytes no longer match their digest'

export interface ClaimsOptions {
  readonly store: ProcessingStore
  readonly clock: Clock
  /** Of subscriptions that set no number of their own. */
  readonly maxAttempts: number
  readonly maxSubscriptions: number
  readonly onTrouble: (doing: string, error: unknown) => void
}

export interface ClaimCommand {
  readonly limit: number
  readonly leaseMs: number
  readonly waitMs: number
  readonly ordered: boolean
  readonly subscription: string
  readonly channelRef: string | null
  /** Payloads in the answer; one larger event is handed out alone. */
  readonly maxBytes?: number
}

export interface SubscriptionCommand extends OwnRetryRules {
  readonly name: string
  readonly from: 'now' | 'beginning'
}

/** The caller: its tenant and its token. */
export interface Processor extends Tenant {
  readonly keyId: string
}

/** Methods answer null for a subscription that does not exist. */
export class Claims implements Service {
  readonly #options: ClaimsOptions
  readonly #polls: LongPolls

  constructor(options: ClaimsOptions) {
    this.#options = options
    const { store, clock, onTrouble } = options
    this.#polls = new LongPolls({
      ready: (queues, now) => store.ready(queues, now),
      now: () => clock.now(),
      onTrouble,
    })
  }

  start(): void {}

  /** Ends every wait: waiting claims answer with no events, and the server can stop. */
  stop(): Promise<void> {
    return this.#polls.stop()
  }

  /** Events may have become ready. */
  hint(): void {
    this.#polls.hint()
  }

  async claim(processor: Processor, command: ClaimCommand, gone: AbortSignal): Promise<readonly ClaimedEvent[] | null> {
    const { subscription, ordered, channelRef, waitMs } = command
    const until = performance.now() + waitMs
    const queue = { tenant: tenantOf(processor), subscription, ordered, channelRef }
    for (let tries = 0; ; tries++) {
      // A client that disconnected must not lease events.
      if (gone.aborted) return []
      const mayFind = tries > 0 || waitMs === 0 || !this.#polls.isEmpty(queue)
      const claimed = mayFind ? await this.#claimOnce(processor, command, queue) : []
      const left = until - performance.now()
      if (claimed === null || claimed.length > 0 || left <= 0 || this.#polls.isStopped) return claimed
      // The last poll found nothing ready; events that arrived since are found by the next call.
      if (!(await this.#polls.wait(queue, left, gone, tries > 0))) return []
    }
  }

  async #claimOnce(
    processor: Processor,
    { limit, leaseMs, maxBytes = MAX_CLAIM_BYTES }: ClaimCommand,
    queue: ClaimQueue,
  ): Promise<readonly ClaimedEvent[] | null> {
    const { store, clock, maxAttempts, onTrouble } = this.#options
    const now = clock.now()
    const ended = this.#polls.trackClaim(queue)
    const claimed = await store.claim({
      ...queue,
      limit,
      maxBytes,
      leaseId: newUuid(),
      leaseExpiresAt: now + leaseMs,
      keyId: processor.keyId,
      maxAttempts,
      now,
    })
    ended(claimed?.length === 0)
    // More events may be ready for the next waiting claim.
    if (claimed && claimed.length > 0) this.#polls.hint()
    for (const { event, payload } of claimed ?? []) {
      if (payload === null && event.erasedAt === null) onTrouble(`read event ${event.id}`, DAMAGED)
    }
    return claimed
  }

  ack(processor: Processor, subscription: string, items: readonly LeaseItem[]): Promise<readonly Settled[] | null> {
    const { store, clock } = this.#options
    const request = { tenant: tenantOf(processor), subscription, now: clock.now() }
    return this.#andHint(inParts(items, (part) => store.ack({ ...request, items: part })))
  }

  extend(
    processor: Processor,
    subscription: string,
    items: readonly LeaseItem[],
    leaseMs: number,
  ): Promise<readonly Settled[] | null> {
    const { store, clock } = this.#options
    const now = clock.now()
    const request = { tenant: tenantOf(processor), subscription, leaseExpiresAt: now + leaseMs, now }
    return inParts(items, (part) => store.extend({ ...request, items: part }))
  }

  release(
    processor: Processor,
    subscription: string,
    items: readonly ReleaseItem[],
  ): Promise<readonly Settled[] | null> {
    const { store, clock, maxAttempts } = this.#options
    const tenant = tenantOf(processor)
    const { keyId } = processor
    const now = clock.now()
    return this.#andHint(store.release({ tenant, subscription, items, maxAttempts, keyId, jitter: Math.random(), now }))
  }

  countDead(processor: Processor, subscription: string, filter: DeadFilter): Promise<number | null> {
    return this.#options.store.countDead({ tenant: tenantOf(processor), subscription }, filter)
  }

  /** The number of requeued events. */
  requeue(processor: Processor, subscription: string, filter: DeadFilter, limit: number): Promise<number | null> {
    const { store, clock } = this.#options
    const { keyId } = processor
    const tenant = tenantOf(processor)
    return this.#andHint(store.requeue({ tenant, subscription, filter, limit, keyId, now: clock.now() }))
  }

  countSettled(processor: Processor, subscription: string, range: SettledRange): Promise<number | null> {
    return this.#options.store.countSettled({ tenant: tenantOf(processor), subscription }, range)
  }

  /** Requeues done and dead events of a range, at most `limit`; a part of them if it is long. */
  replay(processor: Processor, subscription: string, range: SettledRange, limit: number): Promise<Replayed | null> {
    const { store, clock } = this.#options
    const { keyId } = processor
    const tenant = tenantOf(processor)
    return this.#andHint(store.replay({ tenant, subscription, range, limit, keyId, now: clock.now() }))
  }

  subscriptions(processor: Processor): Promise<Subscription[]> {
    return this.#options.store.subscriptions(tenantOf(processor))
  }

  /** Also changes the rules of an existing one. Null: the tenant has the most subscriptions that it may have. */
  createSubscription(processor: Processor, { name, from, ...rules }: SubscriptionCommand) {
    const { store, clock, maxSubscriptions: max } = this.#options
    return store.createSubscription(queueOf(processor, name), from, clock.now(), { max, ...rules })
  }

  /** The rules in force. */
  rulesOf(own: OwnRetryRules): RetryRules {
    return retryRules(own, this.#options.maxAttempts)
  }

  deleteSubscription(processor: Processor, name: string): Promise<boolean> {
    const { store, clock } = this.#options
    return store.deleteSubscription(queueOf(processor, name), clock.now())
  }

  history(processor: Processor, eventId: number): Promise<DeliveryRecord[]> {
    return this.#options.store.history(tenantOf(processor), eventId)
  }

  /** The states of these events in the default subscription; events that it never handed out are missing. */
  async states(processor: Processor, ids: readonly number[]): Promise<ReadonlyMap<number, DeliveryState>> {
    const { store, clock } = this.#options
    return ids.length === 0 ? new Map() : store.states(defaultOf(processor), ids, clock.now())
  }

  /** The numbers of done and of dead events of these conversations in the default subscription. */
  async counts(processor: Processor, conversationIds: readonly number[]) {
    const none: Awaited<ReturnType<ProcessingStore['counts']>> = new Map()
    return conversationIds.length === 0 ? none : this.#options.store.counts(defaultOf(processor), conversationIds)
  }

  async #andHint<T>(change: Promise<T>): Promise<T> {
    const result = await change
    this.#polls.hint()
    return result
  }
}

/** Null as soon as there is no such subscription. */
async function inParts(
  items: readonly LeaseItem[],
  work: (part: readonly LeaseItem[]) => Promise<readonly Settled[] | null>,
): Promise<readonly Settled[] | null> {
  const settled: Settled[] = []
  for (let from = 0; from < items.length; from += ITEMS_PER_PART) {
    const part = await work(items.slice(from, from + ITEMS_PER_PART))
    if (part === null) return null
    settled.push(...part)
  }
  return settled
}

function tenantOf({ accountId, companyId }: Tenant): Tenant {
  return { accountId, companyId }
}

function queueOf(processor: Processor, subscription: string): QueueName {
  return { tenant: tenantOf(processor), subscription }
}

function defaultOf(processor: Processor): QueueName {
  return { tenant: tenantOf(processor), subscription: DEFAULT_SUBSCRIPTION }
}
