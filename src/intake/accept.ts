// Accepts a message: validates its envelope, sets its keys, and waits until the batcher has stored it on disk. The main thread is
// shared by all tenants, so a large body is validated in slices, in turn with those of other tenants.

import type { EventOrigin, Warning } from '../model/event.ts'
import type { Problem } from '../model/errors.ts'
import { scanMessage } from '../model/message-scan.ts'
import { type Principal, tenantText } from '../model/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import { SCANNED_BYTES, SlicedWork } from '../runtime/sliced-work.ts'
import type { AppendItem } from '../store/contract/append.ts'
import type { Receipt, SubmitResult } from './batcher.ts'
import { type Envelope, envelopeOf } from './envelope.ts'
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
  /** Of a message to a hook, and what the recipe read: the body is no JSON of the inbox. */
  readonly hook?: { readonly recipe: string } & Envelope
  /** `intake` by default. */
  readonly origin?: EventOrigin
  /** For arrivals that may repeat; the request id by default. */
  readonly mintedKey?: string
}

/** Warnings: if there are any. */
export type AcceptResult = (Receipt & { readonly warnings?: readonly Warning[] }) | { readonly problem: Problem }
/** May also throw synchronously. */
export type Accept = (arrival: Arrival) => Promise<AcceptResult>

export interface AcceptOptions {
  readonly clock: Clock
  readonly submit: (item: AppendItem) => Promise<SubmitResult>
}

export function createAccept({ clock, submit }: AcceptOptions): Accept {
  const scans = new SlicedWork(SCANNED_BYTES)

  const store = (arrival: Arrival, { sourceRef, channelRef, warnings }: Envelope): Promise<AcceptResult> => {
    const idempotency = readIdempotencyKey(arrival.idempotencyKeys)
    // With a source_ref the header is not used, so a bad one is no reason to refuse.
    if ('unusable' in idempotency && sourceRef === null) {
      return Promise.resolve({ problem: { code: 'invalid_request', message: idempotency.unusable } })
    }
    const { principal } = arrival
    const submitted = submit({
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
      recipe: arrival.hook?.recipe ?? null,
      payload: arrival.payload,
    })
    if (warnings.length === 0) return submitted
    return submitted.then((result) => ('problem' in result ? result : { ...result, warnings }))
  }

  return (arrival) => {
    if (arrival.hook) return store(arrival, arrival.hook)
    const scan = scanMessage(arrival.payload)
    const finish = (): Promise<AcceptResult> => {
      const read = envelopeOf(scan)
      return 'problem' in read ? Promise.resolve(read) : store(arrival, read.envelope)
    }
    const scanning = scans.finish(tenantText(arrival.principal), scan)
    return scanning === null ? finish() : scanning.then(finish)
  }
}

function keyOf(idempotency: IdempotencyKey): string | null {
  return 'key' in idempotency ? idempotency.key : null
}
