// The columns of `events`: inserts, reads, copies and checks of both drivers are built from this list. A new field of
// the model does not compile until it has a column here.

import type { EventMeta, StoredEvent } from '../model/event.ts'
import type { Cell, ColumnType } from './contract/copy.ts'

interface Column {
  readonly name: string
  readonly type: ColumnType
  readonly isOptional?: true
}

/** Columns of an append, in the order in which they are sent (`append_messages` of PostgreSQL takes them in this order). */
const META = {
  companyId: { name: 'company_id', type: 'integer' },
  accountId: { name: 'account_id', type: 'integer' },
  receivedAt: { name: 'received_at', type: 'integer' },
  keyId: { name: 'key_id', type: 'text' },
  scope: { name: 'scope', type: 'text' },
  route: { name: 'route', type: 'text' },
  origin: { name: 'origin', type: 'text' },
  contentType: { name: 'content_type', type: 'text' },
  requestId: { name: 'request_id', type: 'text' },
  sourceRef: { name: 'source_ref', type: 'text', isOptional: true },
  channelRef: { name: 'channel_ref', type: 'text', isOptional: true },
  idempotencyKey: { name: 'idempotency_key', type: 'text', isOptional: true },
  traceparent: { name: 'traceparent', type: 'text', isOptional: true },
  userAgent: { name: 'user_agent', type: 'text', isOptional: true },
  remoteAddr: { name: 'remote_addr', type: 'text', isOptional: true },
  recipe: { name: 'recipe', type: 'text', isOptional: true },
} as const satisfies Record<keyof EventMeta, Column>

/** Columns that the store adds. */
const STORED = {
  id: { name: 'id', type: 'integer' },
  kind: { name: 'kind', type: 'text' },
  revises: { name: 'revises', type: 'integer', isOptional: true },
  size: { name: 'size', type: 'integer' },
  sha256: { name: 'sha256', type: 'bytes' },
  erasedAt: { name: 'erased_at', type: 'integer', isOptional: true },
} as const satisfies Record<Exclude<keyof StoredEvent, keyof EventMeta>, Column>

export type Value = Exclude<Cell, Uint8Array>

export const META_COLUMNS = Object.entries(META).map(([field, column]) => ({
  field: field as keyof EventMeta,
  isOptional: false,
  ...column,
}))

const FIELDS = Object.keys({ ...STORED, ...META }) as (keyof StoredEvent)[]

/** Column list for SELECT, without the payload. */
export const EVENT_COLUMNS = Object.values({ ...STORED, ...META })
  .map(({ name }) => name)
  .join(', ')

/** The same with the payload last. */
export const EVENT_AND_PAYLOAD_COLUMNS = `${EVENT_COLUMNS}, payload`

/** Every column with its type, for copies. */
export const EVENT_COLUMN_TYPES: Readonly<Record<string, ColumnType>> = {
  ...Object.fromEntries(Object.values({ ...STORED, ...META }).map(({ name, type }) => [name, type])),
  payload: 'bytes',
}

/** A row of EVENT_COLUMNS as an array: half the cost of an object if many rows are read. More cells may follow. */
export type EventCells = readonly Cell[]

export function storedEvent(cells: EventCells): StoredEvent {
  const event: Record<string, Cell> = {}
  for (let at = 0; at < FIELDS.length; at++) event[FIELDS[at]!] = cells[at]!
  return event as unknown as StoredEvent
}

/** The payload of a row of EVENT_AND_PAYLOAD_COLUMNS. */
export function payloadOf(cells: EventCells): Uint8Array | null {
  return cells[FIELDS.length] as Uint8Array | null
}

/** The values of META_COLUMNS. */
export function metaValues(meta: EventMeta): Value[] {
  const values: Value[] = []
  for (const { field } of META_COLUMNS) values.push(meta[field])
  return values
}

export function metaOf(values: readonly Value[]): EventMeta {
  const meta: Record<string, Value> = {}
  for (let at = 0; at < META_COLUMNS.length; at++) meta[META_COLUMNS[at]!.field] = values[at]!
  return meta as unknown as EventMeta
}
