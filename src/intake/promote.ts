// A revision becomes an event of its conversation: its bytes are appended to the journal once more, as an event with an id
// of its own, behind everything that is there. So whoever follows the journal meets it: index, queue, stream and copy need
// to know nothing of promotions (docs/internals/adr/0005).
//
// Promoting again is the same arrival again: its key is made from the revision, and the journal keeps one of each key.

import type { Problem } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AppendItem } from '../store/contract/append.ts'
import type { EventReader } from '../store/contract/events.ts'
import type { SubmitResult } from './batcher.ts'
import { derivedKey } from './derived-key.ts'

export interface PromoteOptions {
  readonly events: Pick<EventReader, 'find' | 'payload'>
  readonly clock: Clock
  readonly submit: (item: AppendItem) => Promise<SubmitResult>
}

export interface PromoteRequest {
  readonly principal: Principal
  readonly revisionId: number
  readonly requestId: string
}

export type Promote = (request: PromoteRequest) => Promise<{ readonly id: number } | { readonly problem: Problem }>

const NO_REVISION: Problem = {
  code: 'invalid_request',
  message: 'This is an event, and only a revision can be promoted. Use the id of a revision.',
}

export function createPromote({ events, clock, submit }: PromoteOptions): Promote {
  return async ({ principal, revisionId, requestId }) => {
    const revision = await events.find(revisionId, principal)
    if (!revision) return { problem: { code: 'not_found' } }
    if (revision.kind !== 'revision') return { problem: NO_REVISION }
    const payload = await events.payload(revisionId, principal)
    if (!payload) return { problem: { code: 'erased' } }
    return submit({
      mintedKey: derivedKey('promotion', principal, revisionId),
      accountId: principal.accountId,
      companyId: principal.companyId,
      receivedAt: clock.now(),
      keyId: principal.keyId,
      scope: principal.scope,
      route: promotionRoute(revisionId),
      // The source_ref stays with the first event; the bytes still say it.
      sourceRef: null,
      channelRef: revision.channelRef,
      idempotencyKey: null,
      contentType: revision.contentType,
      origin: 'promotion',
      requestId,
      traceparent: null,
      userAgent: null,
      remoteAddr: null,
      payload,
    })
  }
}

/** The path that a promotion comes in by: it tells which revision it was made from. */
function promotionRoute(revisionId: number): string {
  return `/v1/inbox/events/${revisionId}/promote`
}
