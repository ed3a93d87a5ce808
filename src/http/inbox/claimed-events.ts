// The answer to a claim. Payloads stand in it as they were sent, byte for byte: parsed and written anew, big numbers would
// lose digits and doubled keys would be one. What cannot stand inside JSON (a BOM, bytes that are not JSON) goes as base64.

import type { Claims } from '../../processing/claims.ts'
import { isoTime } from '../../runtime/clock.ts'
import { JSON_CONTENT } from '../answer.ts'
import type { Answer } from '../problem.ts'

type ClaimedEvent = NonNullable<Awaited<ReturnType<Claims['claim']>>>[number]

export function claimedEvents(claimed: readonly ClaimedEvent[]): Answer {
  const parts: Uint8Array[] = [Buffer.from('{"ok":true,"events":[')]
  for (const [n, one] of claimed.entries()) {
    if (n > 0) parts.push(Buffer.from(','))
    parts.push(...partsOf(one))
  }
  parts.push(Buffer.from(']}'))
  return {
    status: 200,
    headers: { 'Content-Type': JSON_CONTENT, 'Cache-Control': 'no-store' },
    body: Buffer.concat(parts),
  }
}

function partsOf({ event, conversationId, attempts, leaseId, leaseExpiresAt, payload }: ClaimedEvent): Uint8Array[] {
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
