// Pushes the events of subscriptions to their endpoints. Follows the endpoints by their generation, and keeps one pusher for each that
// is active. Every node may push: claims keep an event with one of them at a time.

import { ENDPOINT_LIMITS, type Endpoint, type PushAttempt } from '../../model/endpoint.ts'
import { type Tenant, tenantText } from '../../model/principal.ts'
import type { Clock } from '../../runtime/clock.ts'
import { FairSlots } from '../../runtime/fair-slots.ts'
import type { Logger } from '../../runtime/log.ts'
import { PeriodicTask, type Service } from '../../runtime/service.ts'
import type { Secrets } from '../../runtime/secrets.ts'
import type { Tracing } from '../../runtime/tracing.ts'
import type { EndpointStore } from '../../store/contract/endpoints.ts'
import type { QueueName } from '../../store/contract/processing.ts'
import type { Claims } from '../claims.ts'
import type { AddressGuard } from './address-guard.ts'
import { HttpClient } from './http-client.ts'
import { Pusher } from './pusher.ts'
import type { ResolveName } from './resolver.ts'
import { openTarget } from './target.ts'

/** A change is in effect on every node within this, and the time of one read. */
const POLL_MS = 1000
const FLUSH_MS = 2000
/** Of the requests of a node: a tenant whose endpoints all hang leaves the rest to others. */
const TENANT_SHARE = 0.5
/** Endpoints that one read brings. */
const PAGE = 500

export interface PushOptions {
  readonly endpoints: EndpointStore
  readonly claims: Claims
  readonly secrets: Secrets
  readonly guard: AddressGuard
  readonly resolve: ResolveName
  readonly clock: Clock
  readonly logger: Logger
  readonly tracing: Tracing | null
  /** Requests of this node at the same time. */
  readonly maxRequests: number
  /** Requests that are still under way are broken off this long after a stop began. */
  readonly stopMs: number
  /** Messages that wait for a commit now. */
  readonly waiting: () => number
  readonly onAttempt: (attempt: PushAttempt) => void
  /** An endpoint was disabled, because it answered that it is gone. */
  readonly onDisabled: (tenant: Tenant, subscription: string) => Promise<void>
  readonly onTrouble: (doing: string, error: unknown) => void
}

interface Followed {
  endpoint: Endpoint
  readonly pusher: Pusher | null
  attempts: PushAttempt[]
}

export interface PushCounts {
  readonly active: number
  /** Disabled by the service. */
  readonly disabled: number
  readonly circuitsOpen: number
  /** Their target cannot be opened with the key in use. */
  readonly unreadable: number
}

export class Push implements Service {
  readonly #options: PushOptions
  readonly #slots: FairSlots
  readonly #tenants: FairSlots
  readonly #followed = new Map<string, Followed>()
  readonly #follower: PeriodicTask
  readonly #flusher: PeriodicTask
  readonly #stopping = new Set<Promise<void>>()
  #generation = 0
  #stopped: Promise<void> | null = null

  constructor(options: PushOptions) {
    this.#options = options
    this.#slots = new FairSlots({
      slots: options.maxRequests,
      maxPerHolder: options.maxRequests,
      maxWaitingPerHolder: ENDPOINT_LIMITS.concurrency.max,
    })
    this.#tenants = new FairSlots({
      slots: Number.POSITIVE_INFINITY,
      maxPerHolder: Math.max(1, Math.floor(options.maxRequests * TENANT_SHARE)),
      maxWaitingPerHolder: Number.POSITIVE_INFINITY,
    })
    const { onTrouble } = options
    const attempt = (doing: string, work: () => Promise<void>) => () => work().catch((error) => onTrouble(doing, error))
    this.#follower = new PeriodicTask(
      POLL_MS,
      attempt('follow endpoints', () => this.#follow()),
    )
    this.#flusher = new PeriodicTask(
      FLUSH_MS,
      attempt('record push attempts', () => this.#flush()),
    )
  }

  async start(): Promise<void> {
    await this.#follow()
    this.#follower.start()
    this.#flusher.start()
  }

  /** Begins nothing from the call on. */
  stop(): Promise<void> {
    this.#stopped ??= this.#end()
    return this.#stopped
  }

  get counts(): PushCounts {
    const all = Array.from(this.#followed.values())
    const count = (is: (one: Followed) => boolean) => all.filter(is).length
    return {
      active: count(({ pusher }) => pusher !== null),
      disabled: count(({ endpoint }) => !endpoint.isActive && endpoint.disabledReason !== null),
      circuitsOpen: count(({ pusher, endpoint }) => pusher !== null && endpoint.circuit.openedAt !== null),
      unreadable: count(({ pusher, endpoint }) => pusher === null && endpoint.isActive),
    }
  }

  async #end(): Promise<void> {
    const { stopMs, onTrouble } = this.#options
    const followed = Array.from(this.#followed.values())
    for (const { pusher } of followed) if (pusher) this.#stop(pusher, stopMs)
    await this.#follower.stop()
    await this.#flusher.stop()
    await Promise.all(this.#stopping)
    await this.#flush().catch((error) => onTrouble('record push attempts', error))
  }

  #stop(pusher: Pusher, graceMs: number): void {
    const stopping = pusher.stop(graceMs).finally(() => this.#stopping.delete(stopping))
    this.#stopping.add(stopping)
  }

  async #follow(): Promise<void> {
    const { endpoints } = this.#options
    if ((await endpoints.generation()) === this.#generation) return
    for (;;) {
      const changed = await endpoints.changedSince(this.#generation, PAGE)
      for (const endpoint of changed) {
        if (this.#stopped) return
        this.#apply(endpoint)
        this.#generation = endpoint.generation
      }
      if (changed.length < PAGE) return
    }
  }

  #apply(endpoint: Endpoint): void {
    const key = keyOf(endpoint)
    const known = this.#followed.get(key)
    if (known && known.endpoint.revision === endpoint.revision && known.endpoint.isGone === endpoint.isGone) {
      known.endpoint = endpoint
      known.pusher?.setCircuit(endpoint.circuit)
      return
    }
    // Requests under way to the earlier target may end; their leases keep the conversations closed until then.
    if (known?.pusher) this.#stop(known.pusher, known.endpoint.timeoutMs)
    const { logger } = this.#options
    const state = endpoint.isGone ? 'gone' : endpoint.isActive ? 'active' : 'paused'
    if (known || !endpoint.isGone) {
      logger.info('an endpoint is in effect', { ...named(endpoint), revision: endpoint.revision, state })
    }
    if (endpoint.isGone) this.#followed.delete(key)
    else this.#followed.set(key, { endpoint, pusher: this.#start(endpoint), attempts: known?.attempts ?? [] })
  }

  /** Null if it is paused, or cannot be opened. */
  #start(endpoint: Endpoint): Pusher | null {
    if (!endpoint.isActive) return null
    const { secrets, guard, resolve, claims, clock, tracing, waiting, logger, onTrouble } = this.#options
    try {
      const target = openTarget(secrets.box(), endpoint)
      const pusher = new Pusher({
        endpoint,
        target,
        claims,
        client: new HttpClient({ url: new URL(target.url), guard, resolve, maxSockets: endpoint.concurrency }),
        inSlot: (work) => this.#inSlot(endpoint, work),
        clock,
        tracing,
        waiting,
        onAttempt: (attempt) => this.#note(endpoint, attempt),
        onCircuit: (circuit, failure) => this.#setCircuit(endpoint, circuit, failure),
        onGone: (error) => void this.#disable(endpoint, error),
        onTrouble,
      })
      pusher.start()
      return pusher
    } catch (error) {
      // Its message is one of ours and says what to do.
      logger.error('an endpoint cannot be pushed to', { ...named(endpoint), error: (error as Error).message })
      return null
    }
  }

  /** Neither refuses: an endpoint has fewer requests than may wait. */
  #inSlot<T>(endpoint: Endpoint, work: () => Promise<T>): Promise<T> {
    return this.#tenants.run(tenantText(endpoint), () => this.#slots.run(endpoint.id, work)!)!
  }

  #note(endpoint: Endpoint, attempt: PushAttempt): void {
    this.#options.onAttempt(attempt)
    const followed = this.#followed.get(keyOf(endpoint))
    if (!followed) return
    followed.attempts.push(attempt)
    if (followed.attempts.length > 2 * ENDPOINT_LIMITS.attempts) {
      followed.attempts = followed.attempts.slice(-ENDPOINT_LIMITS.attempts)
    }
  }

  async #setCircuit(endpoint: Endpoint, circuit: Endpoint['circuit'], failure: string | null): Promise<void> {
    const { endpoints, logger, onTrouble } = this.#options
    if (circuit.openedAt === null) logger.info('an endpoint takes events again', named(endpoint))
    else {
      const until = new Date(circuit.retryAt ?? 0).toISOString()
      const fields = { ...named(endpoint), failure, trips: circuit.trips, next_try_at: until }
      logger.warn('an endpoint fails: its circuit is open, and its events wait', fields)
    }
    try {
      await endpoints.setCircuit(queueOf(endpoint), endpoint.revision, circuit)
    } catch (error) {
      onTrouble('store the circuit of an endpoint', error)
    }
  }

  async #disable(endpoint: Endpoint, reason: string): Promise<void> {
    const { endpoints, clock, logger, onDisabled, onTrouble } = this.#options
    try {
      const { id, body, timeoutMs, concurrency, sealed, revision } = endpoint
      const settings = { id, body, timeoutMs, concurrency, sealed, isActive: false, disabledReason: reason }
      const changed = await endpoints.put(queueOf(endpoint), settings, revision, clock.now())
      if (changed === null || changed === 'changed') return
      logger.warn('an endpoint answered 410 and was disabled', named(endpoint))
      await onDisabled({ accountId: endpoint.accountId, companyId: endpoint.companyId }, endpoint.subscription)
      // Nothing more is sent from now on, and not only from the next poll.
      if (!this.#stopped) this.#apply(changed)
    } catch (error) {
      onTrouble('disable an endpoint that is gone', error)
    }
  }

  async #flush(): Promise<void> {
    for (const followed of this.#followed.values()) {
      const attempts = followed.attempts.splice(0).slice(-ENDPOINT_LIMITS.attempts)
      if (attempts.length === 0) continue
      await this.#options.endpoints.addAttempts(queueOf(followed.endpoint), attempts, ENDPOINT_LIMITS.attempts)
    }
  }
}

function keyOf({ companyId, accountId, subscription }: Endpoint): string {
  return JSON.stringify([companyId, accountId, subscription])
}

function queueOf({ companyId, accountId, subscription }: Endpoint): QueueName {
  return { tenant: { companyId, accountId }, subscription }
}

/** What a log may say of an endpoint. Its URL may hold a secret. */
function named(endpoint: Endpoint): Record<string, string> {
  return { tenant: tenantText(endpoint), subscription: endpoint.subscription, endpoint: endpoint.id }
}
