// JSON view of a refusal for the API: names in snake_case, times as ISO text in UTC.

import { isoTime } from './event-view.ts'
import type { StoredRefusal } from './refusal.ts'

export function refusalView(refusal: StoredRefusal) {
  return {
    id: refusal.id,
    received_at: isoTime(refusal.receivedAt),
    error: refusal.code,
    reason: refusal.reason,
    key_id: refusal.keyId,
    route: refusal.route,
    request_id: refusal.requestId,
    headers: refusal.headers,
    body_size: refusal.bodySize,
    // Bytes that are not UTF-8 show as U+FFFD.
    body: new TextDecoder('utf-8', { ignoreBOM: true }).decode(refusal.body).toWellFormed(),
    accepted_as: refusal.acceptedAs,
  }
}
