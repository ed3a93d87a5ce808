// Retention: deletes what is older than a tenant wants to keep it.
//
// Promises
// - A message goes as a whole: a first event, its revisions, the events promoted from them, with their re-sends and all that
//   processing knows of them, in one transaction, unless it has very many revisions. Its dedupe key stays, with an HMAC in place of
//   the digest of its bytes: the same bytes sent again are a duplicate, other bytes are stored.
// - Other bytes that come after their first event has gone are an event that names it in `revises`: indexed and handed out as
//   any other.
// - Nothing under a lease goes. Without `purgesUnprocessed`, nothing goes that a subscription in use has not processed.
// - A conversation keeps its id as long as its channel_ref may come again, which is for ever.
// - The index still holds entries of what has gone, until `followPurges` has removed them. Readers pass over them.
// - Every call is bounded, whatever is stored, and can be killed at any point and repeated.

import type { Tenant } from '../../model/principal.ts'
import type { PurgeRequest, PurgeStep } from '../../model/retention-plan.ts'
import type { RetentionKind, RetentionRule } from '../../model/retention.ts'

/** What goes row by row. */
export type AgedKind = Exclude<RetentionKind, 'events'>

export interface RetentionStore {
  /** The default first. */
  rules(): Promise<RetentionRule[]>
  /** Replaces the tenant's rule, or the default. */
  setRule(rule: RetentionRule): Promise<void>
  /** Tenants that have rows of this kind, in order, after the given one. */
  tenants(kind: RetentionKind, after: Tenant | null, limit: number): Promise<Tenant[]>
  purgeStep(request: PurgeRequest): Promise<PurgeStep>
  /** Deletes the oldest refusals, or entries of processing histories, of before this time. Returns how many. */
  deleteOld(kind: AgedKind, tenant: Tenant, before: number, limit: number): Promise<number>
  /** How many of them are of before this time, and when the oldest came; counting ends at the limit. */
  countOld(
    kind: AgedKind,
    tenant: Tenant,
    before: number,
    limit: number,
  ): Promise<{ readonly count: number; readonly oldest: number | null }>
  /** Lets the index follow: one bounded step. True: call again. */
  followPurges(): Promise<boolean>
}
