// Promotes a revision to an event: appends its bytes to the journal again as a new event. Index, queue, stream and copy
// follow the journal, so they need no code for promotions.
//
// The key is derived from the revision, so promoting it again is a duplicate. An erasure of the revision erases what was promoted
// from it by then; what is promoted from bytes that were read before, this file erases.

import type { Problem } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AppendItem } from '../store/contract/append.ts'
import type { ErasureStore } from '../store/contract/erasures.ts'
import type { EventReader } from '../store/contract/events.ts'
import type { SubmitResult } from './batcher.ts'
import { derivedKey } from '../model/derived-key.ts'

export interface PromoteOptions {
  readonly events: Pick<EventReader, 'find' | 'payload'>
  readonly erasures: Pick<ErasureStore, 'erase'>
  readonly clock: Clock
  readonly submit: (item: AppendItem) => Promise<SubmitResult>
}

export interface PromoteRequest {
  readonly principal: Principal
  readonly revisionId: number
  readonly requestId: string
}

export type Promote = (request: PromoteRequest) => Promise<{ readonly id: number } | { readonly problem: Problem }>

const NOT_A_REVISION: Problem = {
  code: 'invalid_request',
  message: 'This is an event, and only a revision can be promoted. Use the id of a revision.',
}

export function createPromote({ events, erasures, clock, submit }: PromoteOptions): Promote {
  return async ({ principal, revisionId, requestId }) => {
    const revision = await events.find(revisionId, principal)
    if (!revision) return { problem: { code: 'not_found' } }
    if (revision.kind !== 'revision') return { problem: NOT_A_REVISION }
    const payload = await events.payload(revisionId, principal)
    if (!payload) return { problem: { code: 'erased' } }
    const result = await submit({
      mintedKey: derivedKey('promotion', principal, revisionId),
      accountId: principal.accountId,
      companyId: principal.companyId,
      receivedAt: clock.now(),
      keyId: principal.keyId,
      scope: principal.scope,
      route: promotionRoute(revisionId),
      // The source_ref stays with the first event.
      sourceRef: null,
      channelRef: revision.channelRef,
      idempotencyKey: null,
      contentType: revision.contentType,
      origin: 'promotion',
      requestId,
      traceparent: null,
      userAgent: null,
      remoteAddr: null,
      recipe: revision.recipe,
      payload,
    })
    if ('problem' in result || (await events.find(revisionId, principal))?.erasedAt === null) return result
    await erasures.erase(principal, [result.id], clock.now())
    return { problem: { code: 'erased' } }
  }
}

/** The route of a promotion names its revision. */
function promotionRoute(revisionId: number): string {
  return `/v1/inbox/events/${revisionId}/promote`
}
