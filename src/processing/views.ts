// JSON of claims, settlements and deliveries, for the API and for commands.

import type { Settled } from '../model/processing-plan.ts'
import { isoTime } from '../runtime/clock.ts'
import type { ClaimedEvent, DeliveryRecord } from '../store/contract/processing.ts'

/**
 * A claimed event as JSON. The payload is embedded unparsed, because parsing would change large numbers and drop repeated
 * keys. Payloads that cannot be embedded (a BOM, bytes that are not JSON) are given as base64.
 */
export function claimedEventJson(claimed: ClaimedEvent): string {
  const { event, payload } = claimed
  const meta = JSON.stringify({
    id: event.id,
    lease_id: claimed.leaseId,
    lease_expires_at: isoTime(claimed.leaseExpiresAt),
    attempts: claimed.attempts,
    conversation_id: claimed.conversationId,
    channel_ref: event.channelRef,
    source_ref: event.sourceRef,
    received_at: isoTime(event.receivedAt),
    scope: event.scope,
    key_id: event.keyId,
    traceparent: event.traceparent,
    content_type: event.contentType,
    size: event.size,
    sha256: Buffer.from(event.sha256).toString('hex'),
  })
  return `${meta.slice(0, -1)},${payload === null ? missingPart(claimed) : payloadPart(payload)}}`
}

function missingPart({ event }: ClaimedEvent): string {
  return `"payload":null,"payload_missing":"${event.erasedAt === null ? 'damaged' : 'erased'}"`
}

function payloadPart(payload: Uint8Array): string {
  const text = embeddable(payload)
  return text === null ? `"payload_base64":"${Buffer.from(payload).toString('base64')}"` : `"payload":${text}`
}

/** The payload's text if it is JSON; null if it would break the answer. */
function embeddable(payload: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload)
    JSON.parse(text)
    return text
  } catch {
    return null
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
