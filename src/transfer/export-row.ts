// A row of the journal as a line of an export, and back. The payload is text if it is UTF-8, else base64: either way its bytes
// come back exactly. An erased row has neither payload nor digest.

import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { EVENT_ORIGINS, type EventKind, type EventMeta, type StoredEvent } from '../model/event.ts'
import type { DeliveryState } from '../model/processing.ts'
import { customDigest, digestOfDefinition } from '../model/recipes/recipe.ts'
import { isoTime } from '../runtime/clock.ts'
import { META_COLUMNS } from '../store/event-columns.ts'

/** JSON would take six characters for each. No JSON holds them as they are. */
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f]/

export interface ExportedRow {
  readonly event: StoredEvent
  /** Null if it was erased, or if it is damaged. */
  readonly payload: Uint8Array | null
  /** In the subscription that was asked for. Undefined: none was. Null: a revision has none. */
  readonly state?: DeliveryState | null | undefined
  /** Of the custom recipe that it was read by. */
  readonly definition?: string | null | undefined
}

/** A row as it is read from an export. */
export interface ReadRow {
  readonly id: number
  readonly kind: EventKind
  readonly revises: number | null
  readonly erasedAt: number | null
  readonly meta: EventMeta
  readonly sha256: Uint8Array | null
  readonly payload: Uint8Array | null
  /** Of its custom recipe; null for every other row. */
  readonly definition: string | null
}

export function isDamaged({ payload, event }: ExportedRow): boolean {
  return payload === null && event.erasedAt === null
}

export function fieldsOf(row: ExportedRow): Record<string, unknown> {
  const { event, payload, state } = row
  const isErased = event.erasedAt !== null
  return {
    id: event.id,
    kind: event.kind,
    revises: event.revises,
    ...metaFields(event),
    // What stands in an erased row in place of it is an HMAC, which means nothing elsewhere.
    ...(isErased ? { channel_ref: null } : {}),
    size: event.size,
    sha256: isErased ? null : Buffer.from(event.sha256).toString('hex'),
    erased_at: event.erasedAt === null ? null : isoTime(event.erasedAt),
    ...(state === undefined ? {} : { state }),
    ...(isDamaged(row) ? { damaged: true } : {}),
    ...(row.definition ? { recipe_definition: row.definition } : {}),
    ...payloadField(payload),
  }
}

function metaFields(event: StoredEvent): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const { field, name } of META_COLUMNS)
    fields[name] = field === 'receivedAt' ? isoTime(event.receivedAt) : event[field]
  return fields
}

function payloadField(payload: Uint8Array | null): Record<string, string | null> {
  if (payload === null) return { payload: null }
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const text = isUtf8(bytes) ? bytes.toString() : null
  return text === null || CONTROL.test(text) ? { payload_base64: bytes.toString('base64') } : { payload: text }
}

/** Throws the second half of a sentence about the row. */
export function rowOf(fields: Readonly<Record<string, unknown>>): ReadRow {
  const { id, kind, revises, sha256 } = fields
  if (!isId(id)) throw new Error('has no id')
  if (kind !== 'event' && kind !== 'revision') throw new Error('is neither an event nor a revision')
  if (revises !== null && !isId(revises)) throw new Error('has no whole number in revises')
  const erasedAt = fields.erased_at === null ? null : timeOf(fields.erased_at, 'erased_at')
  const payload = payloadOf(fields)
  const digest = typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) ? Buffer.from(sha256, 'hex') : null
  if (erasedAt !== null && (payload !== null || sha256 !== null)) throw new Error('is erased and has content')
  if (erasedAt === null && digest === null) throw new Error('has no sha256')
  if (erasedAt === null && payload === null && fields.damaged !== true) throw new Error('has no payload')
  if (payload !== null && !hash('sha256', payload, 'buffer').equals(digest!))
    throw new Error('has a payload that does not match its sha256')
  const meta = metaOf(fields)
  const definition = definitionOf(meta, fields.recipe_definition)
  return { id, kind, revises, erasedAt, meta, sha256: digest, payload, definition }
}

/** Longer than any that `./intray hook create` takes. */
const MAX_DEFINITION = 64 * 1024

/** Must be the one that the recipe names by digest. */
function definitionOf({ recipe }: EventMeta, definition: unknown): string | null {
  const digest = recipe === null ? null : customDigest(recipe)
  if (digest === null || definition === undefined) return null
  if (typeof definition !== 'string' || definition.length > MAX_DEFINITION || digestOfDefinition(definition) !== digest)
    throw new Error('has a recipe_definition that is not its recipe')
  return definition
}

function payloadOf({ payload, payload_base64: base64 }: Readonly<Record<string, unknown>>): Uint8Array | null {
  if (typeof base64 === 'string') return Buffer.from(base64, 'base64')
  if (typeof payload === 'string') return Buffer.from(payload)
  if (payload === null) return null
  throw new Error('has no payload')
}

function metaOf(fields: Readonly<Record<string, unknown>>): EventMeta {
  const meta: Record<string, unknown> = {}
  for (const { field, name, type, isOptional } of META_COLUMNS) {
    const value = fields[name]
    if (field === 'receivedAt') meta[field] = timeOf(value, name)
    else if (value === null ? isOptional : type === 'text' ? typeof value === 'string' : isId(value))
      meta[field] = value
    else throw new Error(`has no ${type === 'text' ? 'text' : 'whole number'} in ${name}`)
  }
  if (!EVENT_ORIGINS.some((origin) => origin === meta.origin)) throw new Error('has an unknown origin')
  return meta as unknown as EventMeta
}

function timeOf(value: unknown, name: string): number {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(ms) || isoTime(ms) !== value) throw new Error(`has no time in ${name}`)
  return ms
}

function isId(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}
