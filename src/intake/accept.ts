// Accepts a message: validates its envelope, sets its keys, and waits until the batcher has stored it on disk.

import type { EventOrigin } from '../model/event.ts'
import type { Problem } from '../model/errors.ts'
import type { Principal } from '../model/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import type { AppendItem } from '../store/contract/append.ts'
import type { Receipt, SubmitResult } from './batcher.ts'
import { readEnvelope } from './envelope.ts'
import { type IdempotencyKey, readIdempotencyKey } from './idempotency-key.ts'

/** An authenticated message. */
export interface Arrival {
  readonly principal: Principal
  readonly route: string
  readonly requestId: string
  readonly payload: Buffer
  readonly contentType: string
  readonly idempotencyKeys: readonly string[]
  readonly traceparent: string | null
  readonly userAgent: string | null
  readonly remoteAddr: string | null
  /** `intake` by default. */
  readonly origin?: EventOrigin
  /** For arrivals that may repeat; the request id by default. */
  readonly mintedKey?: string
}

export type AcceptResult = Receipt | { readonly problem: Problem }
/** May also throw synchronously. */
export type Accept = (arrival: Arrival) => Promise<AcceptResult>

export interface AcceptOptions {
  readonly clock: Clock
  readonly submit: (item: AppendItem) => Promise<SubmitResult>
}

export function createAccept({ clock, submit }: AcceptOptions): Accept {
  return (arrival) => {
    const read = readEnvelope(arrival.payload)
    if ('problem' in read) return Promise.resolve(read)
    const { sourceRef, channelRef } = read.envelope
    const idempotency = readIdempotencyKey(arrival.idempotencyKeys)
    // With a source_ref the header is not used, so a bad one is no reason to refuse.
    if ('unusable' in idempotency && sourceRef === null) {
      return Promise.resolve({ problem: { code: 'invalid_request', message: idempotency.unusable } })
    }
    const { principal } = arrival
    return submit({
      mintedKey: arrival.mintedKey ?? arrival.requestId,
      accountId: principal.accountId,
      companyId: principal.companyId,
      receivedAt: clock.now(),
      keyId: principal.keyId,
      scope: principal.scope,
      route: arrival.route,
      sourceRef,
      channelRef,
      idempotencyKey: keyOf(idempotency),
      contentType: arrival.contentType,
      origin: arrival.origin ?? 'intake',
      requestId: arrival.requestId,
      traceparent: arrival.traceparent,
      userAgent: arrival.userAgent,
      remoteAddr: arrival.remoteAddr,
      payload: arrival.payload,
    })
  }
}

function keyOf(idempotency: IdempotencyKey): string | null {
  return 'key' in idempotency ? idempotency.key : null
}
