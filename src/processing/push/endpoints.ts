// Makes and changes endpoints, with the same rules for commands, the API and the console. Secrets are shown once, when they are made.

import {
  type BodyForm,
  type Endpoint,
  ENDPOINT_LIMITS,
  type EndpointSettings,
  type EndpointTarget,
  type HeaderField,
  PUSH_RETRY_RULES,
  type PushAttempt,
  type SigningSecret,
} from '../../model/endpoint.ts'
import type { Tenant } from '../../model/principal.ts'
import type { Clock } from '../../runtime/clock.ts'
import { newUuid, randomBase62 } from '../../runtime/id.ts'
import { SecretUnreadable } from '../../runtime/secret-box.ts'
import { type Secrets, SecretsKeyMissing } from '../../runtime/secrets.ts'
import type { EndpointStore } from '../../store/contract/endpoints.ts'
import type { SettledRange } from '../../store/contract/processing.ts'
import type { Claims, Processor } from '../claims.ts'
import type { AddressGuard } from './address-guard.ts'
import { requestOf } from './delivery.ts'
import { HttpClient, type PushResult } from './http-client.ts'
import type { ResolveName } from './resolver.ts'
import { makeSecret } from './signature.ts'
import { openTarget, sealTarget, secretTexts } from './target.ts'
import { testMessage } from './test-message.ts'
import { keptText } from './verdict.ts'

/** As long an id does not repeat among all endpoints there will be. */
const ID_LENGTH = 10
/** How often a change is tried against others. */
const MAX_TRIES = 5

export interface EndpointsOptions {
  readonly store: EndpointStore
  readonly claims: Claims
  readonly secrets: Secrets
  /** Whether anything is sealed in this database, be it of another kind. */
  readonly hasSealed: () => Promise<boolean>
  readonly guard: AddressGuard
  readonly resolve: ResolveName
  readonly clock: Clock
}

/** What is left out stays, or has its default in a new endpoint. */
export interface EndpointChange {
  readonly url?: string | undefined
  readonly body?: BodyForm | undefined
  readonly timeoutMs?: number | undefined
  readonly concurrency?: number | undefined
  /** Replaces all of them. */
  readonly headers?: readonly HeaderField[] | undefined
  /** Replaces the current one at once. */
  readonly secret?: string | undefined
}

/** An endpoint with what is sealed in it; null if it cannot be opened. */
export interface OpenedEndpoint {
  readonly endpoint: Endpoint
  readonly target: EndpointTarget | null
}

export interface ChangedEndpoint extends OpenedEndpoint {
  /** To be shown once: the secret that was made. */
  readonly madeSecret: string | null
  readonly created: boolean
}

export type Missing = 'no_subscription' | 'no_endpoint' | 'no_url'

export interface TestResult {
  readonly messageId: string
  readonly result: PushResult
  /** What the endpoint answered, without secrets. */
  readonly text: string
}

export class Endpoints {
  readonly #options: EndpointsOptions

  constructor(options: EndpointsOptions) {
    this.#options = options
  }

  async list(tenant: Tenant | null): Promise<OpenedEndpoint[]> {
    return (await this.#options.store.list(tenant)).map((endpoint) => this.#opened(endpoint))
  }

  async find(tenant: Tenant, subscription: string): Promise<OpenedEndpoint | null> {
    const endpoint = await this.#options.store.find({ tenant: tenantOf(tenant), subscription })
    return endpoint && this.#opened(endpoint)
  }

  attempts(tenant: Tenant, subscription: string, limit: number): Promise<PushAttempt[]> {
    return this.#options.store.attempts({ tenant: tenantOf(tenant), subscription }, limit)
  }

  /** Makes an endpoint, or changes it. One that the service disabled is active again. */
  async set(processor: Processor, subscription: string, change: EndpointChange): Promise<ChangedEndpoint | Missing> {
    const { claims, clock } = this.#options
    const found = (await claims.subscriptions(processor)).find(({ name }) => name === subscription)
    if (!found) return 'no_subscription'
    let madeSecret: string | null = null
    const now = clock.now()
    const changed = await this.#change(processor, subscription, (old) => {
      const url = change.url ?? old?.target.url
      if (url === undefined) return 'no_url'
      madeSecret = old || change.secret ? null : makeSecret()
      const secret = change.secret ?? madeSecret
      const current: SigningSecret[] = secret === null ? [] : [{ secret, createdAt: now, endsAt: null }]
      const { endpoint, target } = old ?? { endpoint: null, target: null }
      return {
        isActive: endpoint === null || endpoint.isActive || endpoint.disabledReason !== null,
        disabledReason: null,
        body: change.body ?? endpoint?.body ?? 'event',
        timeoutMs: change.timeoutMs ?? endpoint?.timeoutMs ?? ENDPOINT_LIMITS.timeoutMs.fallback,
        concurrency: change.concurrency ?? endpoint?.concurrency ?? ENDPOINT_LIMITS.concurrency.fallback,
        target: {
          url,
          headers: change.headers ?? target?.headers ?? [],
          secrets: current.length > 0 ? current : (target?.secrets ?? []),
        },
      }
    })
    if (typeof changed === 'string') return changed
    if (changed.created && found.maxAttempts === null && found.firstDelayMs === null && found.maxDelayMs === null) {
      await claims.createSubscription(processor, { name: subscription, from: 'now', ...PUSH_RETRY_RULES })
    }
    return { ...changed, madeSecret }
  }

  setActive(processor: Processor, subscription: string, isActive: boolean): Promise<ChangedEndpoint | Missing> {
    return this.#change(processor, subscription, (old) => old && { isActive, disabledReason: null })
  }

  /** A new secret signs at once. The old one signs beside it until the overlap is over; without one it ends now. */
  async rotateSecret(
    processor: Processor,
    subscription: string,
    { overlapMs, secret: given }: { readonly overlapMs: number | null; readonly secret: string | null },
  ): Promise<ChangedEndpoint | Missing> {
    const now = this.#options.clock.now()
    const secret = given ?? makeSecret()
    const changed = await this.#change(processor, subscription, (old) => {
      if (!old) return null
      const { target } = old
      const current = target.secrets.filter(({ endsAt }) => endsAt === null)
      const ending = overlapMs === null ? [] : current.map((one) => ({ ...one, endsAt: now + overlapMs }))
      const secrets = [{ secret, createdAt: now, endsAt: null }, ...ending].slice(0, ENDPOINT_LIMITS.secrets)
      return { target: { ...target, secrets } }
    })
    return typeof changed === 'string' ? changed : { ...changed, madeSecret: given === null ? secret : null }
  }

  remove(tenant: Tenant, subscription: string): Promise<boolean> {
    const { store, clock } = this.#options
    return store.remove({ tenant: tenantOf(tenant), subscription }, clock.now())
  }

  /** Sends a signed test message, whatever the state of the endpoint is. Nothing is counted or kept of it. */
  async test(tenant: Tenant, subscription: string): Promise<TestResult | Missing> {
    const { store, secrets, guard, resolve, clock } = this.#options
    const endpoint = await store.find({ tenant: tenantOf(tenant), subscription })
    if (!endpoint) return 'no_endpoint'
    const target = openTarget(secrets.box(), endpoint)
    const client = new HttpClient({ url: new URL(target.url), guard, resolve, maxSockets: 1 })
    try {
      const message = testMessage(endpoint, newUuid(), clock.now())
      const result = await client.post(await requestOf(message, target, endpoint.timeoutMs, clock.now(), null))
      const text = 'status' in result ? keptText(result.body, secretTexts(target)) : ''
      return { messageId: message.id, result, text }
    } finally {
      client.stop()
    }
  }

  countReplay(processor: Processor, subscription: string, range: SettledRange): Promise<number | null> {
    return this.#options.claims.countSettled(processor, subscription, range)
  }

  /** Hands out done and dead events of the range again, the oldest first, at most `limit`. */
  async replay(processor: Processor, subscription: string, range: SettledRange, limit: number) {
    const { claims } = this.#options
    let [count, fromId] = [0, range.fromId]
    while (count < limit) {
      const step = await claims.replay(processor, subscription, { ...range, fromId }, limit - count)
      if (step === null) return null
      if (step.lastId === null) return { count, nextId: null }
      count += step.count
      fromId = step.lastId + 1
    }
    return { count, nextId: fromId <= range.toId ? fromId : null }
  }

  #opened(endpoint: Endpoint): OpenedEndpoint {
    try {
      return { endpoint, target: openTarget(this.#options.secrets.box(), endpoint) }
    } catch (error) {
      if (error instanceof SecretUnreadable || error instanceof SecretsKeyMissing) return { endpoint, target: null }
      throw error
    }
  }

  /** `make`: from the endpoint as it is; null if it needs one and there is none. */
  async #change(
    tenant: Tenant,
    subscription: string,
    make: (
      old: { readonly endpoint: Endpoint; readonly target: EndpointTarget } | null,
    ) => (Partial<EndpointSettings> & { readonly target?: EndpointTarget }) | Missing | null,
  ): Promise<ChangedEndpoint | Missing> {
    const { store, secrets, clock, hasSealed } = this.#options
    const queue = { tenant: tenantOf(tenant), subscription }
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const endpoint = await store.find(queue)
      const box = await secrets.boxForSealing(hasSealed)
      const old = endpoint && { endpoint, target: openTarget(box, endpoint) }
      const made = make(old)
      if (made === null) return 'no_endpoint'
      if (typeof made === 'string') return made
      const { target = old!.target, ...settings } = made
      const id = endpoint?.id ?? randomBase62(ID_LENGTH)
      const sealed = sealTarget(box, queue.tenant, id, target)
      const all = { ...(endpoint ? settingsOf(endpoint) : NEW), ...settings, id, sealed }
      const put = await store.put(queue, all, endpoint?.revision ?? 0, clock.now())
      if (put === null) return 'no_subscription'
      if (put !== 'changed') return { endpoint: put, target, madeSecret: null, created: endpoint === null }
    }
    throw new Error(`the endpoint of ${subscription} changed ${MAX_TRIES} times meanwhile`)
  }
}

const NEW = {
  isActive: true,
  disabledReason: null,
  body: 'event',
  timeoutMs: ENDPOINT_LIMITS.timeoutMs.fallback,
  concurrency: ENDPOINT_LIMITS.concurrency.fallback,
} as const

function settingsOf({ isActive, disabledReason, body, timeoutMs, concurrency }: Endpoint) {
  return { isActive, disabledReason, body, timeoutMs, concurrency }
}

function tenantOf({ accountId, companyId }: Tenant): Tenant {
  return { accountId, companyId }
}
