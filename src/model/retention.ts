// How long a tenant's data is kept. A rule of a tenant goes before the default of all tenants; what neither of them says is kept for
// ever, except refusals, for which the setting INTRAY_REFUSALS_MAX_AGE applies.

import type { Tenant } from './principal.ts'

/** What has an age of its own: messages, refused requests, texts of failed attempts. */
export type RetentionKind = 'events' | 'refusals' | 'history'

export const RETENTION_KINDS: readonly RetentionKind[] = ['events', 'refusals', 'history']

/** Whole days. */
export type RetentionAge = number | 'never'

/** A hundred years: a larger number is a mistake. */
export const MAX_RETENTION_DAYS = 36_500

const DAY_MS = 86_400_000

/** Null: as the default, or not set in the default itself. */
export interface RetentionSettings {
  readonly events: RetentionAge | null
  readonly refusals: RetentionAge | null
  readonly history: RetentionAge | null
  /** Whether messages go that some subscription has not processed. */
  readonly unprocessed: 'keep' | 'purge' | null
}

export interface RetentionRule extends RetentionSettings {
  /** Null: the default of all tenants. */
  readonly tenant: Tenant | null
}

export const NO_RETENTION: RetentionSettings = { events: null, refusals: null, history: null, unprocessed: null }

/** What is in force for a tenant. An age is in milliseconds; null: kept for ever. */
export interface Retention extends Readonly<Record<RetentionKind, number | null>> {
  readonly purgesUnprocessed: boolean
}

export class RetentionRules {
  readonly #byTenant: ReadonlyMap<string, RetentionSettings>
  readonly #fallback: RetentionSettings
  readonly #refusalsMaxAgeMs: number

  constructor(rules: readonly RetentionRule[], refusalsMaxAgeMs: number) {
    this.#fallback = rules.find(({ tenant }) => tenant === null) ?? NO_RETENTION
    this.#byTenant = new Map(rules.flatMap((rule) => (rule.tenant === null ? [] : [[keyOf(rule.tenant), rule]])))
    this.#refusalsMaxAgeMs = refusalsMaxAgeMs
  }

  of(tenant: Tenant): Retention {
    const own = this.#byTenant.get(keyOf(tenant)) ?? NO_RETENTION
    const ageOf = (kind: RetentionKind): number | null => {
      const age = own[kind] ?? this.#fallback[kind]
      if (age === null) return kind === 'refusals' ? this.#refusalsMaxAgeMs : null
      return age === 'never' ? null : age * DAY_MS
    }
    return {
      events: ageOf('events'),
      refusals: ageOf('refusals'),
      history: ageOf('history'),
      purgesUnprocessed: (own.unprocessed ?? this.#fallback.unprocessed) === 'purge',
    }
  }
}

const keyOf = ({ companyId, accountId }: Tenant): string => `${companyId}:${accountId}`
