// JSON of claims, settlements and deliveries, for the API and for commands.

import { digestText } from '../model/erasure.ts'
import type { RetryRules } from '../model/processing.ts'
import type { Settled } from '../model/processing-plan.ts'
import { isoTime } from '../runtime/clock.ts'
import type { ClaimedEvent, DeliveryRecord, Subscription } from '../store/contract/processing.ts'

/**
 * A claimed event as JSON, in parts, which the caller puts together once. The payload is embedded unparsed, because parsing would change large numbers and drop repeated
 * keys. Payloads that cannot be embedded (a BOM, bytes that are not JSON) are given as base64.
 */
export function claimedEventJson(claimed: ClaimedEvent): Uint8Array[] {
  const { leaseId, leaseExpiresAt } = claimed
  return eventJson(claimed, { lease_id: leaseId, lease_expires_at: isoTime(leaseExpiresAt) })
}

/** The same as it is pushed: without the lease, which is the service's own. */
export function pushedEventJson(claimed: ClaimedEvent): Uint8Array[] {
  return eventJson(claimed, {})
}

function eventJson(claimed: ClaimedEvent, lease: Readonly<Record<string, string>>): Uint8Array[] {
  const { event } = claimed
  const meta = JSON.stringify({
    id: event.id,
    ...lease,
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
    sha256: digestText(event),
  })
  return [Buffer.from(`${meta.slice(0, -1)},`), ...payloadParts(claimed), CLOSING]
}

const CLOSING = Buffer.from('}')

function payloadParts({ event, payload, isJson }: ClaimedEvent): Uint8Array[] {
  if (payload === null) {
    return [Buffer.from(`"payload":null,"payload_missing":"${event.erasedAt === null ? 'damaged' : 'erased'}"`)]
  }
  if (isJson) return [Buffer.from('"payload":'), payload]
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  return [Buffer.from(`"payload_base64":"${bytes.toString('base64')}"`)]
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

/** `rules`: those in force. */
export function subscriptionView({ name, createdAt, enqueuedUpTo }: Subscription, rules: RetryRules) {
  return {
    name,
    created_at: createdAt === null ? null : isoTime(createdAt),
    enqueued_up_to: enqueuedUpTo,
    max_attempts: rules.maxAttempts,
    first_delay_s: rules.firstDelayMs / 1000,
    max_delay_s: rules.maxDelayMs / 1000,
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
