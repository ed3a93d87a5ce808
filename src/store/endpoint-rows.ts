// Maps rows of endpoints to the model, for both drivers.

import type { BodyForm, Endpoint, EndpointSettings, PushAttempt } from '../model/endpoint.ts'
import type { Cell } from './contract/copy.ts'

type Row = Record<string, unknown>

/** Of an endpoint `e` with its subscription `s`. */
export const ENDPOINT_COLUMNS = `e.company_id, e.account_id, s.name, s.deleted_at, e.id, e.is_active, e.body, e.timeout_ms,
  e.concurrency, e.sealed, e.disabled_reason, e.created_at, e.changed_at, e.removed_at, e.is_moved, e.opened_at, e.retry_at,
  e.trips, e.revision, e.generation`

export function endpoint(row: Row): Endpoint {
  return {
    companyId: row.company_id as number,
    accountId: row.account_id as number,
    subscription: row.name as string,
    id: row.id as string,
    isActive: row.is_active === 1,
    body: row.body as BodyForm,
    timeoutMs: row.timeout_ms as number,
    concurrency: row.concurrency as number,
    sealed: row.sealed as Uint8Array,
    disabledReason: row.disabled_reason as string | null,
    createdAt: row.created_at as number,
    changedAt: row.changed_at as number,
    circuit: {
      openedAt: row.opened_at as number | null,
      retryAt: row.retry_at as number | null,
      trips: row.trips as number,
    },
    revision: row.revision as number,
    isGone: row.removed_at !== null || row.deleted_at !== null || row.is_moved === 1,
    generation: row.generation as number,
  }
}

/** The values of settings, in the order of the drivers' statements. */
export function settingsValues(settings: EndpointSettings): Cell[] {
  const { id, isActive, body, timeoutMs, concurrency, sealed, disabledReason } = settings
  return [id, isActive ? 1 : 0, body, timeoutMs, concurrency, sealed, disabledReason]
}

/** Attempts as they are stored: newest first. */
export function withAttempts(stored: string | undefined, added: readonly PushAttempt[], keep: number): string {
  const all = [...added, ...storedAttempts(stored)].toSorted((a, b) => b.at - a.at)
  return JSON.stringify(all.slice(0, keep))
}

export function storedAttempts(stored: string | undefined): PushAttempt[] {
  return stored === undefined ? [] : (JSON.parse(stored) as PushAttempt[])
}
