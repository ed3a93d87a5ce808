// Rows of the index, for both drivers: the columns of each table, and the values of a derived event in their order.

import type { Derived, RepeatCount } from '../model/index-step.ts'
import { ERASED_CHANNEL } from '../model/erasure.ts'
import type { TrafficRow } from '../model/traffic.ts'
import { foldEmail } from '../model/text-search.ts'
import type { ColumnType } from './contract/copy.ts'
import type { Value } from './event-columns.ts'

export interface IndexTable {
  readonly name: string
  readonly columns: Readonly<Record<string, ColumnType>>
}

export const ENTRIES: IndexTable = {
  name: 'event_index',
  columns: {
    company_id: 'integer',
    account_id: 'integer',
    event_id: 'integer',
    kind: 'text',
    received_at: 'integer',
    key_id: 'text',
    scope: 'text',
    conversation_id: 'integer',
    contact_name: 'text',
    contact_email: 'text',
    email_key: 'text',
    message_type: 'text',
    snippet: 'text',
    warnings: 'text',
    unindexed: 'text',
    erased: 'integer',
  },
}

export function entryValues({ row, fields, unindexed }: Derived, conversationId: number | null): Value[] {
  return [
    row.companyId,
    row.accountId,
    row.id,
    row.kind,
    row.receivedAt,
    row.keyId,
    row.scope,
    conversationId,
    fields?.contactName ?? null,
    fields?.contactEmail ?? null,
    fields?.contactEmail ? foldEmail(fields.contactEmail) : null,
    fields?.messageType ?? null,
    fields?.snippet ?? null,
    fields && fields.warnings.length > 0 ? JSON.stringify(fields.warnings) : null,
    unindexed,
    row.erasedAt === null ? 0 : 1,
  ]
}

export const CONVERSATIONS: IndexTable = {
  name: 'conversations',
  columns: {
    company_id: 'integer',
    account_id: 'integer',
    channel_key: 'text',
    channel_ref: 'text',
    id: 'integer',
    event_count: 'integer',
    erased_count: 'integer',
    first_received_at: 'integer',
    last_event_id: 'integer',
    last_received_at: 'integer',
    first_contact_name: 'text',
    first_contact_email: 'text',
    last_contact_name: 'text',
    last_contact_email: 'text',
    last_snippet: 'text',
  },
}

/** From events of one conversation, in id order. */
export function conversationValues(group: readonly Derived[]): Value[] {
  const first = group[0]!
  const last = group.at(-1)!
  const kept = group.filter(({ row }) => row.erasedAt === null)
  return [
    first.row.companyId,
    first.row.accountId,
    first.row.channelKey,
    kept[0]?.row.channelRef ?? `${ERASED_CHANNEL}${first.row.channelKey}`,
    first.row.id,
    group.length,
    group.length - kept.length,
    first.row.receivedAt,
    last.row.id,
    last.row.receivedAt,
    first.fields?.contactName ?? null,
    first.fields?.contactEmail ?? null,
    last.fields?.contactName ?? null,
    last.fields?.contactEmail ?? null,
    last.fields?.snippet ?? null,
  ]
}

export const REPEATS: IndexTable = {
  name: 'repeats',
  columns: {
    company_id: 'integer',
    event_id: 'integer',
    resends: 'integer',
    revisions: 'integer',
    last_seen_at: 'integer',
  },
}

export function repeatValues({ companyId, eventId, resends, revisions, lastSeenAt }: RepeatCount): Value[] {
  return [companyId, eventId, resends, revisions, lastSeenAt]
}

export const TRAFFIC: IndexTable = {
  name: 'traffic',
  columns: {
    company_id: 'integer',
    account_id: 'integer',
    span: 'integer',
    at: 'integer',
    key_id: 'text',
    events: 'integer',
    resends: 'integer',
    revisions: 'integer',
  },
}

export function trafficValues(row: TrafficRow): Value[] {
  const { companyId, accountId, at, keyId, events, resends, revisions } = row
  return [companyId, accountId, row.span === 'minute' ? 0 : 1, at, keyId, events, resends, revisions]
}
