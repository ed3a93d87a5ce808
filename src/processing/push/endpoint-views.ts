// JSON of endpoints for the API and for commands. Values of secret headers and signing secrets are in none of it.

import { endpointState, type PushAttempt } from '../../model/endpoint.ts'
import { isoTime } from '../../runtime/clock.ts'
import type { OpenedEndpoint, TestResult } from './endpoints.ts'
import { shownUrl } from './target-url.ts'
import { liveSecrets } from './target.ts'

const time = (ms: number | null) => (ms === null ? null : isoTime(ms))

export function endpointView({ endpoint, target }: OpenedEndpoint, now: number) {
  const { circuit } = endpoint
  return {
    id: endpoint.id,
    subscription: endpoint.subscription,
    state: target === null ? 'unreadable' : endpointState(endpoint, now),
    url: target && shownUrl(target.url),
    body: endpoint.body,
    timeout_s: endpoint.timeoutMs / 1000,
    concurrency: endpoint.concurrency,
    headers: (target?.headers ?? []).map(({ name, value, isSecret }) => ({
      name,
      value: isSecret ? null : value,
      secret: isSecret,
    })),
    secrets: (target === null ? [] : liveSecrets(target, now)).map(({ createdAt, endsAt }) => ({
      created_at: isoTime(createdAt),
      ends_at: time(endsAt),
    })),
    disabled_reason: endpoint.disabledReason,
    circuit: { opened_at: time(circuit.openedAt), next_try_at: time(circuit.retryAt), trips: circuit.trips },
    created_at: isoTime(endpoint.createdAt),
    changed_at: isoTime(endpoint.changedAt),
  }
}

export type EndpointView = ReturnType<typeof endpointView>

export function attemptView({ at, eventId, attempt, status, failure, ms }: PushAttempt) {
  return { at: isoTime(at), event_id: eventId, attempt, status, failure, ms }
}

/** Of the attempts that are kept. */
export function attemptSummary(attempts: readonly PushAttempt[]) {
  const times = attempts.map(({ ms }) => ms).toSorted((a, b) => a - b)
  const percentile = (share: number) => times[Math.max(0, Math.ceil(times.length * share) - 1)] ?? null
  return {
    count: attempts.length,
    failed: attempts.filter(({ failure }) => failure !== null).length,
    p50_ms: percentile(0.5),
    p95_ms: percentile(0.95),
    last_delivered_at: time(attempts.find(({ failure }) => failure === null)?.at ?? null),
    last_failed_at: time(attempts.find(({ failure }) => failure !== null)?.at ?? null),
  }
}

export function testView({ messageId, result, text }: TestResult) {
  const answered = 'status' in result
  return {
    webhook_id: messageId,
    status: answered ? result.status : null,
    failure: answered ? null : result.failure,
    reason: answered ? null : result.reason,
    ms: Math.round(result.ms),
    body: text,
  }
}
