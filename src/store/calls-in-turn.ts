// Lets the calls of tenants wait for each other, so that none of them takes what all share.

import { type Tenant, tenantText } from '../model/principal.ts'
import { FairSlots } from '../runtime/fair-slots.ts'
import type { EventReader } from './contract/events.ts'
import { StoreFailure } from './contract/failure.ts'

/** More than the requests that a tenant may have in progress by default. */
export const MAX_WAITING = 2000
/** Of different tenants. */
const PAYLOADS_AT_ONCE = 4

/** The main thread takes a payload of 1 MB, and answers with it, in some milliseconds: one of each tenant at a time. */
export function payloadsInTurn(events: EventReader): EventReader {
  const slots = new FairSlots({
    slots: PAYLOADS_AT_ONCE,
    maxPerHolder: 1,
    maxWaitingPerHolder: MAX_WAITING,
  })
  const { payload, payloadFields } = events
  return { ...events, ...callsInTurn({ payload, payloadFields }, slots) }
}

/** A call that names a tenant, itself or in its first value, waits for a slot in the turn of that tenant. */
export function callsInTurn<T extends object>(reads: T, slots: FairSlots): T {
  const calls = Object.entries(reads as Record<string, (...args: readonly unknown[]) => Promise<unknown>>)
  const wrapped = calls.map(([name, call]) => [
    name,
    (...args: readonly unknown[]) => {
      const tenant = args.map(tenantIn).find((one) => one !== null)
      if (!tenant) return call(...args)
      return (
        slots.run(tenantText(tenant), () => call(...args)) ??
        Promise.reject(new StoreFailure('unavailable', 'too many calls of this tenant are waiting'))
      )
    },
  ])
  return Object.fromEntries(wrapped) as T
}

function tenantIn(value: unknown): Tenant | null {
  const owner = (value as { tenant?: unknown } | null | undefined)?.tenant ?? value
  return typeof owner === 'object' && owner !== null && 'companyId' in owner ? (owner as Tenant) : null
}
