// GET /v1/console/overview: a tenant's traffic, refusals, queue depth and senders, all from stored counters.

import type { Tenant } from '../../model/principal.ts'
import type { TokenRecord } from '../../model/token.ts'
import { HOUR_MS, MAX_QUEUE_COUNT, MINUTE_MS, type TrafficCounts, type TrafficRow } from '../../model/traffic.ts'
import { isoTime } from '../../runtime/clock.ts'
import { callerOf, jsonAnswer } from '../call.ts'
import { withQuery } from '../query.ts'
import type { ConsoleOptions } from './options.ts'

const MINUTES = 60
const DAY_MS = 24 * HOUR_MS
const MAX_SENDERS = 50
/** Tokens that one query reads; the others are read one by one. */
const TOKEN_PAGE = 200

export function overviewOperations({ traffic, tokens, clock, indexLag }: ConsoleOptions) {
  /** Senders of the last 24 hours, the busiest first. */
  const sendersOf = async (tenant: Tenant, hours: readonly TrafficRow[]) => {
    const counts = new Map<string, number>()
    for (const { keyId, events } of hours) counts.set(keyId, (counts.get(keyId) ?? 0) + events)
    const busiest = Array.from(counts)
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, MAX_SENDERS)
    const listed = await tokens.list(tenant, null, TOKEN_PAGE)
    const known = new Map(listed.map((one): [string, TokenRecord | null] => [one.keyId, one]))
    for (const [keyId] of busiest) if (!known.has(keyId)) known.set(keyId, await tokens.find(tenant, keyId))
    return busiest.map(([keyId, events]) => {
      const token = known.get(keyId)
      return {
        key_id: keyId,
        label: token?.label ?? '',
        scope: token?.scope ?? '',
        events_24h: events,
        last_used_at: token?.lastUsedAt ? isoTime(token.lastUsedAt) : null,
      }
    })
  }

  const overview = withQuery({}, async (call) => {
    const tenant = callerOf(call)
    const now = clock.now()
    const thisMinute = now - (now % MINUTE_MS)
    const midnight = now - (now % DAY_MS)
    const dayAgo = now - (now % HOUR_MS) - DAY_MS + HOUR_MS
    const minutes = await traffic.minutes(tenant, thisMinute - (MINUTES - 1) * MINUTE_MS)
    const hours = await traffic.hours(tenant, Math.min(midnight, dayAgo))
    const { oldestPendingAt, ...depth } = await traffic.queueDepth(tenant, now)
    const refusals = await traffic.refusalCounts(tenant, now - DAY_MS)
    return jsonAnswer({
      at: isoTime(now),
      intake: { minutes: everyMinute(minutes, thisMinute) },
      today: countsView(sumOf(hours.filter(({ at }) => at >= midnight))),
      refusals: refusals.map(({ code, count, lastAt }) => ({ code, count, last_at: isoTime(lastAt) })),
      queue: { ...depth, counted_up_to: MAX_QUEUE_COUNT },
      oldest_pending_at: oldestPendingAt === null ? null : isoTime(oldestPendingAt),
      senders: await sendersOf(
        tenant,
        hours.filter(({ at }) => at >= dayAgo),
      ),
      index_lag: await indexLag(),
    })
  })

  return { overview }
}

/** The last 60 minutes, oldest first, also those without messages. */
function everyMinute(rows: readonly TrafficRow[], thisMinute: number) {
  const known = new Map(rows.map((row) => [row.at, row]))
  return Array.from({ length: MINUTES }, (_, n) => {
    const at = thisMinute - (MINUTES - 1 - n) * MINUTE_MS
    return { at: isoTime(at), ...countsView(known.get(at) ?? NOTHING) }
  })
}

const NOTHING: Readonly<TrafficCounts> = { events: 0, resends: 0, revisions: 0 }

function sumOf(rows: readonly TrafficRow[]): TrafficCounts {
  const sum = { ...NOTHING }
  for (const { events, resends, revisions } of rows) {
    sum.events += events
    sum.resends += resends
    sum.revisions += revisions
  }
  return sum
}

function countsView({ events, resends, revisions }: Readonly<TrafficCounts>) {
  return { events, duplicates: resends, revisions }
}
