// How what processors do is told, by the API and by commands.

import type { Settled } from '../model/processing-plan.ts'
import { isoTime } from '../runtime/clock.ts'
import type { ClaimedEvent, DeliveryRecord } from '../store/contract/processing.ts'

/**
 * An event that was handed out, as JSON in parts. Its payload stands in it as it was sent, byte for byte: parsed and written
 * anew, big numbers would lose digits and doubled keys would be one. What cannot stand inside JSON (a BOM, bytes that are not
 * JSON) goes as base64.
 */
export function claimedEventParts({
  event,
  conversationId,
  attempts,
  leaseId,
  leaseExpiresAt,
  payload,
}: ClaimedEvent): Uint8Array[] {
  const meta = {
    id: event.id,
    lease_id: leaseId,
    lease_expires_at: isoTime(leaseExpiresAt),
    attempts,
    conversation_id: conversationId,
    channel_ref: event.channelRef,
    source_ref: event.sourceRef,
    received_at: isoTime(event.receivedAt),
    scope: event.scope,
    key_id: event.keyId,
    traceparent: event.traceparent,
    content_type: event.contentType,
    size: event.size,
    sha256: Buffer.from(event.sha256).toString('hex'),
  }
  if (payload === null) {
    const missing = event.erasedAt === null ? 'damaged' : 'erased'
    return [Buffer.from(JSON.stringify({ ...meta, payload: null, payload_missing: missing }))]
  }
  if (!canBeEmbedded(payload)) {
    return [Buffer.from(JSON.stringify({ ...meta, payload_base64: Buffer.from(payload).toString('base64') }))]
  }
  const head = JSON.stringify(meta)
  return [Buffer.from(`${head.slice(0, -1)},"payload":`), payload, Buffer.from('}')]
}

/** Whether it is JSON as it stands: otherwise it would break the whole answer. */
function canBeEmbedded(payload: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload))
    return true
  } catch {
    return false
  }
}

export function settledView(one: Settled): Record<string, unknown> {
  if (!one.ok) return { id: one.id, ok: false, error: 'lease_lost' }
  return {
    id: one.id,
    ok: true,
    state: one.state,
    ...(one.state === 'leased' ? { lease_expires_at: isoTime(one.leaseExpiresAt ?? 0) } : {}),
    ...(one.state === 'pending' ? { available_at: isoTime(one.availableAt) } : {}),
  }
}

export function deliveryView(one: DeliveryRecord): Record<string, unknown> {
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms))
  return {
    subscription: one.subscription,
    state: one.state,
    attempts: one.attempts,
    available_at: one.state === 'pending' ? time(one.availableAt) : null,
    lease_expires_at: time(one.leaseExpiresAt),
    claimed_by: one.keyId,
    settled_at: time(one.settledAt),
    history: one.history.map(({ at, what, state, attempts, keyId, error }) => ({
      at: isoTime(at),
      what,
      state,
      attempts,
      key_id: keyId,
      error,
    })),
  }
}
