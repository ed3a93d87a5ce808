// Retention: walks through the tenants and deletes what is older than their rules let it become; at the start, and then every
// INTRAY_RETENTION_EVERY. The rules are read again each time.
//
// It works in short steps beside intake: after each one it pauses for PAUSE_FACTOR times as long as the step took. A walk that was
// killed is begun again: what it had deleted is gone, and the rest is found as before. Several nodes may walk at once; the store
// takes their steps one after the other.

import type { Tenant } from '../model/principal.ts'
import type { PurgePosition, PurgeRequest, PurgeStep } from '../model/retention-plan.ts'
import {
  RETENTION_KINDS,
  type Retention as RetentionOf,
  type RetentionKind,
  RetentionRules,
} from '../model/retention.ts'
import type { Clock } from '../runtime/clock.ts'
import { PeriodicTask, type Service } from '../runtime/service.ts'
import { Signal } from '../runtime/signal.ts'
import type { RetentionStore } from '../store/contract/retention.ts'

/** So retention takes a tenth of the time that intake could use. */
const PAUSE_FACTOR = 9
const MAX_PAUSE_MS = 1000
/** Tenants that are looked up at once, and refusals or history entries that one step deletes. */
const TENANTS = 100
const ROWS = 100

/** Rows that went, of one tenant in one walk. */
export type RetentionCounts = Record<RetentionKind, number>

export interface RetentionOptions {
  readonly store: RetentionStore
  readonly clock: Clock
  readonly everyMs: number
  readonly refusalsMaxAgeMs: number
  /** A tenant is done with, and lost something. */
  readonly onTenant: (tenant: Tenant, counts: RetentionCounts, held: number) => Promise<void>
  readonly onDeleted: (kind: RetentionKind, rows: number) => void
  readonly onTrouble: (doing: string, error: unknown) => void
}

export class Retention implements Service {
  readonly #options: RetentionOptions
  readonly #timer: PeriodicTask
  readonly #halt = new Signal()
  #running: Promise<void> | null = null
  #isStopped = false
  #held = 0
  #overdueMs = 0
  #lastAt: number | null = null

  constructor(options: RetentionOptions) {
    this.#options = options
    this.#timer = new PeriodicTask(options.everyMs, () => this.run())
  }

  /** Messages that were too old in the last walk and stayed, because a subscription had not processed them. */
  get held(): number {
    return this.#held
  }

  /** By how much the oldest message of the walk under way had passed its age; 0 after a walk. */
  get overdueMs(): number {
    return this.#overdueMs
  }

  /** When the last walk ended; null: none has since the start. */
  get lastAt(): number | null {
    return this.#lastAt
  }

  start(): void {
    void this.run()
    this.#timer.start()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#halt.raise()
    await this.#timer.stop()
    await this.#running
  }

  /** One walk at a time. */
  run(): Promise<void> {
    this.#running ??= this.#walk().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #walk(): Promise<void> {
    const { store, clock, refusalsMaxAgeMs, onTrouble } = this.#options
    try {
      // What a walk that was killed left to the index.
      await this.#followAll()
      const rules = new RetentionRules(await store.rules(), refusalsMaxAgeMs)
      const now = clock.now()
      let held = 0
      for await (const tenant of this.#tenants()) held += await this.#purgeTenant(tenant, rules.of(tenant), now)
      if (this.#isStopped) return
      this.#held = held
      this.#lastAt = clock.now()
    } catch (error) {
      onTrouble('delete what is too old', error)
    }
    this.#overdueMs = 0
  }

  /** Each once, whatever it has. */
  async *#tenants(): AsyncGenerator<Tenant> {
    const { store } = this.#options
    const seen = new Set<string>()
    for (const kind of RETENTION_KINDS) {
      for (let after: Tenant | null = null; ; ) {
        const page: Tenant[] = await this.#step(() => store.tenants(kind, after, TENANTS))
        for (const tenant of page) {
          if (this.#isStopped) return
          const name = `${tenant.companyId}:${tenant.accountId}`
          if (!seen.has(name)) yield tenant
          seen.add(name)
        }
        if (page.length < TENANTS) break
        after = page.at(-1)!
      }
    }
  }

  /** Returns how many messages are held back. */
  async #purgeTenant(tenant: Tenant, ages: RetentionOf, now: number): Promise<number> {
    const counts = { events: 0, refusals: 0, history: 0 }
    const held = ages.events === null ? 0 : await this.#purgeEvents(tenant, now - ages.events, ages, now, counts)
    for (const kind of ['refusals', 'history'] as const) {
      const age = ages[kind]
      if (age !== null) await this.#deleteOld(kind, tenant, now - age, counts)
    }
    const { onTenant } = this.#options
    if (Object.values(counts).some((count) => count > 0)) await onTenant(tenant, counts, held)
    return held
  }

  async #purgeEvents(
    tenant: Tenant,
    before: number,
    { purgesUnprocessed }: RetentionOf,
    now: number,
    counts: RetentionCounts,
  ): Promise<number> {
    const { store } = this.#options
    let held = 0
    for (let after: PurgePosition | null = null; !this.#isStopped; ) {
      const request: PurgeRequest = { tenant, before, now, purgesUnprocessed, after, dryRun: false }
      const step: PurgeStep = await this.#step(() => store.purgeStep(request))
      this.#count('events', step.rows, counts)
      held += step.held
      if (step.oldest !== null) this.#overdueMs = before - step.oldest
      if (step.rows > 0) await this.#step(() => store.followPurges())
      if (step.next === null) break
      after = step.next
    }
    if (counts.events > 0) await this.#followAll()
    return held
  }

  async #deleteOld(
    kind: 'refusals' | 'history',
    tenant: Tenant,
    before: number,
    counts: RetentionCounts,
  ): Promise<void> {
    while (!this.#isStopped) {
      const rows = await this.#step(() => this.#options.store.deleteOld(kind, tenant, before, ROWS))
      this.#count(kind, rows, counts)
      if (rows < ROWS) return
    }
  }

  async #followAll(): Promise<void> {
    while (!this.#isStopped && (await this.#step(() => this.#options.store.followPurges())));
  }

  #count(kind: RetentionKind, rows: number, counts: RetentionCounts): void {
    counts[kind] += rows
    if (rows > 0) this.#options.onDeleted(kind, rows)
  }

  /** Does one step, and pauses. */
  async #step<T>(work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now()
    const result = await work()
    const pauseMs = PAUSE_FACTOR * (performance.now() - startedAt)
    if (!this.#isStopped) await this.#halt.wait(Math.min(pauseMs, MAX_PAUSE_MS))
    return result
  }
}
