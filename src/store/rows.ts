// Maps database rows to model types. Column names are the same in every driver, so each mapper is written once.

import type { Conversation } from '../model/conversation.ts'
import type { ErasureRecord } from '../model/erasure.ts'
import type { EventIndexEntry, Warning } from '../model/event.ts'
import type { FollowedEvent } from '../model/followed-event.ts'
import type { AuditAction, AuditEntry, OperatorRecord, OperatorRole } from '../model/operator.ts'
import type { HookRecord, StoredRecipe } from '../model/hook.ts'
import { isEmbeddable, isIntact } from '../model/payload.ts'
import type { Tenant } from '../model/principal.ts'
import {
  DEFAULT_SUBSCRIPTION,
  type Delivery,
  type DeliveryState,
  EXPIRED,
  type HistoryEntry,
  NO_OWN_RULES,
} from '../model/processing.ts'
import type { PendingDeliveries } from '../model/processing-plan.ts'
import type { Refusal, StoredRefusal } from '../model/refusal.ts'
import type { RetentionAge, RetentionRule } from '../model/retention.ts'
import type { TokenRecord } from '../model/token.ts'
import type { TrafficRow } from '../model/traffic.ts'
import { formatRate, parseRate } from '../runtime/rate.ts'
import type { Cell } from './contract/copy.ts'
import type { SessionRecord } from './contract/operators.ts'
import type { ClaimedEvent, ClaimRequest, Subscription } from './contract/processing.ts'
import type { NewToken } from './contract/tokens.ts'
import type { RefusalCount } from './contract/traffic.ts'
import { type EventCells, payloadOf, storedEvent, type Value } from './event-columns.ts'

export type Row = Record<string, unknown>

export function belongsTo({ accountId, companyId }: Tenant, tenant: Tenant | undefined): boolean {
  return !tenant || (accountId === tenant.accountId && companyId === tenant.companyId)
}

/** Large payloads are checked in turns. The payload is null if it was erased or is damaged: the event is handed out all the same, and the answer says why. */
export async function claimedEvent(
  cells: EventCells,
  { lane, attempts }: { readonly lane: number; readonly attempts: number },
  { leaseId, leaseExpiresAt }: ClaimRequest,
  turn: () => Promise<void>,
): Promise<ClaimedEvent> {
  const event = storedEvent(cells)
  const stored = payloadOf(cells)
  const payload = stored !== null && isIntact(stored, event.sha256) ? stored : null
  return {
    event,
    conversationId: event.channelRef === null ? null : lane,
    attempts,
    leaseId,
    leaseExpiresAt,
    payload,
    isJson: payload !== null && (await isEmbeddable(payload, turn)),
  }
}

export const DELIVERY_COLUMNS = `event_id, lane, state, attempts, available_at, lease_id, lease_expires_at, ordered, key_id,
  settled_at, entries`

export type DeliveryCells = [
  eventId: number,
  lane: number,
  state: DeliveryState,
  attempts: number,
  availableAt: number,
  leaseId: string | null,
  leaseExpiresAt: number | null,
  ordered: number,
  keyId: string | null,
  settledAt: number | null,
  entries: number,
]

export function delivery(cells: readonly [...DeliveryCells, ...unknown[]]): Delivery {
  return {
    eventId: cells[0],
    lane: cells[1],
    state: cells[2],
    attempts: cells[3],
    availableAt: cells[4],
    leaseId: cells[5],
    leaseExpiresAt: cells[6],
    ordered: cells[7] === 1,
    keyId: cells[8],
    settledAt: cells[9],
    entries: cells[10],
  }
}

/** Pending deliveries are read with the sizes of their payloads. */
export type PendingCells = [...DeliveryCells, size: number | null]

export function pendingDeliveries(rows: readonly PendingCells[]): PendingDeliveries {
  return { deliveries: rows.map(delivery), sizes: new Map(rows.map((cells) => [cells[0], cells[11] ?? 0])) }
}

export const SUBSCRIPTION_COLUMNS = 'name, created_at, enqueued_up_to, max_attempts, first_delay_ms, max_delay_ms'

export function subscription(row: Row): Subscription {
  return {
    name: row.name as string,
    createdAt: row.created_at as number,
    enqueuedUpTo: row.enqueued_up_to as number,
    maxAttempts: row.max_attempts as number | null,
    firstDelayMs: row.first_delay_ms as number | null,
    maxDelayMs: row.max_delay_ms as number | null,
  }
}

/** `default`, before its first use. */
export const UNUSED_DEFAULT: Subscription = {
  name: DEFAULT_SUBSCRIPTION,
  createdAt: null,
  enqueuedUpTo: 0,
  ...NO_OWN_RULES,
}

/** By event, from the newest history entry of each. */
export function lastErrors(rows: readonly Row[]): Map<number, string> {
  const errors = rows.map((row) => [row.event_id as number, row.what === 'expired' ? EXPIRED : row.error] as const)
  return new Map(errors.filter((pair): pair is [number, string] => typeof pair[1] === 'string'))
}

export function indexEntry(row: Row): EventIndexEntry {
  return {
    conversationId: row.conversation_id as number | null,
    contactName: row.contact_name as string | null,
    contactEmail: row.contact_email as string | null,
    messageType: row.message_type as string | null,
    snippet: row.snippet as string | null,
    warnings: row.warnings === null ? [] : (JSON.parse(row.warnings as string) as Warning[]),
    unindexed: row.unindexed as string | null,
  }
}

export function conversation(row: Row, { accountId, companyId }: Tenant, channelRef: string): Conversation {
  return {
    id: row.id as number,
    accountId,
    companyId,
    channelRef,
    eventCount: row.event_count as number,
    firstReceivedAt: row.first_received_at as number,
    lastEventId: row.last_event_id as number,
    lastReceivedAt: row.last_received_at as number,
    firstContact: {
      name: row.first_contact_name as string | null,
      email: row.first_contact_email as string | null,
    },
    lastContact: { name: row.last_contact_name as string | null, email: row.last_contact_email as string | null },
    lastSnippet: row.last_snippet as string | null,
  }
}

export function followedEvent(row: Row): FollowedEvent {
  return {
    id: row.id as number,
    kind: row.kind as FollowedEvent['kind'],
    revises: row.revises as number | null,
    receivedAt: row.received_at as number,
    sourceRef: row.source_ref as string | null,
    channelRef: row.channel_ref as string | null,
    conversationId: row.conversation_id as number | null,
    contactName: row.contact_name as string | null,
    contactEmail: row.contact_email as string | null,
    messageType: row.message_type as string | null,
    snippet: row.snippet as string | null,
    size: row.size as number,
    sha256: row.sha256 as Uint8Array,
    erasedAt: row.erased_at as number | null,
    scope: row.scope as string,
    keyId: row.key_id as string,
    requestId: row.request_id as string,
  }
}

export function erasureRecord(row: Row): ErasureRecord {
  return {
    id: row.id as number,
    accountId: row.account_id as number,
    companyId: row.company_id as number,
    eventId: row.event_id as number,
    erasedAt: row.erased_at as number,
    digest: row.digest as Uint8Array | null,
    bytes: row.bytes as Uint8Array,
  }
}

export function historyEntry(row: Row): HistoryEntry {
  return {
    eventId: row.event_id as number,
    number: row.number as number,
    at: row.at as number,
    what: row.what as HistoryEntry['what'],
    state: row.state as DeliveryState,
    attempts: row.attempts as number,
    keyId: row.key_id as string | null,
    error: row.error as string | null,
  }
}

export function storedRefusal(row: Row): StoredRefusal {
  return {
    id: row.id as number,
    accountId: row.account_id as number,
    companyId: row.company_id as number,
    receivedAt: row.received_at as number,
    keyId: row.key_id as string,
    code: row.code as Refusal['code'],
    reason: row.reason as string | null,
    route: row.route as string,
    requestId: row.request_id as string,
    headers: JSON.parse(row.headers as string) as Record<string, string>,
    bodySize: row.body_size as number,
    body: row.body as Uint8Array,
    acceptedAs: row.accepted_as as number | null,
  }
}

export function operatorRecord(row: Row): OperatorRecord {
  return {
    id: row.id as string,
    name: row.name as string,
    role: row.role as OperatorRole,
    tenants: tenantsOf(row.tenants as string | null),
    password: row.password as string | null,
    createdAt: row.operator_created_at as number,
    disabledAt: row.disabled_at as number | null,
  }
}

/** Encodes tenants as `[[account, company], …]` for the column. */
export function tenantsText(tenants: readonly Tenant[] | null): string | null {
  return tenants && JSON.stringify(tenants.map(({ accountId, companyId }) => [accountId, companyId]))
}

function tenantsOf(text: string | null): readonly Tenant[] | null {
  if (text === null) return null
  return (JSON.parse(text) as [number, number][]).map(([accountId, companyId]) => ({ accountId, companyId }))
}

export function sessionRecord(row: Row): SessionRecord {
  return {
    hash: row.hash as Uint8Array,
    operatorId: row.id as string,
    createdAt: row.created_at as number,
    expiresAt: row.expires_at as number,
    seenAt: row.seen_at as number,
  }
}

export function auditEntry(row: Row): AuditEntry {
  const [companyId, accountId] = [row.company_id as number | null, row.account_id as number | null]
  return {
    id: row.id as string,
    at: row.at as number,
    operatorId: row.operator_id as string | null,
    operator: row.operator as string,
    action: row.action as AuditAction,
    tenant: companyId === null || accountId === null ? null : { accountId, companyId },
    target: row.target as string | null,
    requestId: row.request_id as string | null,
    address: row.address as string | null,
  }
}

/** In the order of the `audit` columns that the drivers name. */
export function auditValues(entry: AuditEntry): Value[] {
  return [
    entry.id,
    entry.at,
    entry.operatorId,
    entry.operator,
    entry.action,
    entry.tenant?.companyId ?? null,
    entry.tenant?.accountId ?? null,
    entry.target,
    entry.requestId,
    entry.address,
  ]
}

export const TOKEN_COLUMNS = `key_id, hash, account_id, company_id, scope, label, is_active, expires_at, created_at, disabled_at,
  last_used_at, rotated_from, rate_limit, moved_to, recipe`

/** SQLite stores booleans as 0 and 1. */
export function tokenRecord(row: Row): TokenRecord {
  return {
    keyId: row.key_id as string,
    hash: row.hash as Uint8Array,
    accountId: row.account_id as number,
    companyId: row.company_id as number,
    scope: row.scope as string,
    label: row.label as string,
    isActive: row.is_active === true || row.is_active === 1,
    expiresAt: row.expires_at as number | null,
    createdAt: row.created_at as number,
    disabledAt: row.disabled_at as number | null,
    lastUsedAt: row.last_used_at as number | null,
    rotatedFrom: row.rotated_from as string | null,
    rateLimit: row.rate_limit === null ? null : parseRate(row.rate_limit as string),
    movedTo: row.moved_to as string | null,
    recipe: row.recipe as string | null,
  }
}

/** Values of a new token, in the order of the drivers' INSERT. */
export function tokenValues(token: NewToken): Cell[] {
  return [
    token.keyId,
    token.hash,
    token.accountId,
    token.companyId,
    token.scope,
    token.label,
    token.expiresAt,
    token.createdAt,
    token.rotatedFrom,
    token.rateLimit ? formatRate(token.rateLimit) : null,
    token.recipe ?? null,
  ]
}

export function hookRecord(row: Row): HookRecord {
  return {
    keyId: row.key_id as string,
    companyId: row.company_id as number,
    accountId: row.account_id as number,
    firstKeyId: row.first_key_id as string,
    maxBody: row.max_body as number | null,
    sealed: row.sealed as Uint8Array,
  }
}

/** In the order of the drivers' INSERT. */
export function hookValues({ keyId, companyId, accountId, maxBody, firstKeyId, sealed }: HookRecord): Cell[] {
  return [keyId, companyId, accountId, maxBody, firstKeyId, sealed]
}

/** In the order of the drivers' INSERT. */
export function recipeValues({ companyId, accountId, digest, recipe, createdAt }: StoredRecipe): Cell[] {
  return [companyId, accountId, digest, recipe, createdAt]
}

export function trafficRow(row: Row, { accountId, companyId }: Tenant): TrafficRow {
  return {
    accountId,
    companyId,
    span: row.span === 0 ? 'minute' : 'hour',
    at: row.at as number,
    keyId: row.key_id as string,
    events: row.events as number,
    resends: row.resends as number,
    revisions: row.revisions as number,
  }
}

export const RETENTION_RULE_COLUMNS = 'company_id, account_id, events, refusals, history, unprocessed'

/** The default has no tenant, and 0 in its columns. Days are 0 for never. */
export function retentionRule(row: Row): RetentionRule {
  const ageOf = (days: unknown): RetentionAge | null => (days === 0 ? 'never' : (days as number | null))
  const [companyId, accountId] = [row.company_id as number, row.account_id as number]
  return {
    tenant: companyId === 0 ? null : { accountId, companyId },
    events: ageOf(row.events),
    refusals: ageOf(row.refusals),
    history: ageOf(row.history),
    unprocessed: row.unprocessed as RetentionRule['unprocessed'],
  }
}

/** In the order of RETENTION_RULE_COLUMNS. */
export function retentionRuleValues({ tenant, events, refusals, history, unprocessed }: RetentionRule): Value[] {
  const daysOf = (age: RetentionAge | null): number | null => (age === 'never' ? 0 : age)
  const ages = [events, refusals, history].map(daysOf)
  return [tenant?.companyId ?? 0, tenant?.accountId ?? 0, ...ages, unprocessed]
}

/** By code, the most frequent first. */
export function refusalCounts(rows: readonly Row[], since: number): RefusalCount[] {
  const counts = new Map<string, { code: string; count: number; lastAt: number }>()
  for (const row of rows) {
    const { code, received_at: at } = row as { code: string; received_at: number }
    if (at < since) continue
    const known = counts.get(code) ?? { code, count: 0, lastAt: 0 }
    counts.set(code, { code, count: known.count + 1, lastAt: Math.max(known.lastAt, at) })
  }
  return Array.from(counts.values()).toSorted((a, b) => b.count - a.count || a.code.localeCompare(b.code))
}
