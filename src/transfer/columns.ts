// The columns of an export as a table: one row for each event and revision, flat, with the fields that people look for read out of
// the payload.

import type { Extract } from '../model/extract.ts'
import { createRecipeOf, readingOf, readWhole } from '../model/payload-reading.ts'
import { META_COLUMNS } from '../store/event-columns.ts'
import type { ExportedRow } from './export-row.ts'

/** `time`: milliseconds since 1970. */
export type ColumnType = 'number' | 'time' | 'text' | 'bytes'
export type ColumnValue = number | string | Uint8Array | null

export interface TableColumn {
  readonly name: string
  readonly type: ColumnType
  readonly read: (row: TableRow) => ColumnValue
}

export interface TableRow extends ExportedRow {
  readonly fields: Pick<Extract, 'contactName' | 'contactEmail' | 'messageType' | 'text'>
}

/** Fields of custom recipes are not read out. */
const RECIPES = createRecipeOf(() => null)
const NO_FIELDS = { contactName: null, contactEmail: null, messageType: null, text: null }

export function tableRow(row: ExportedRow): TableRow {
  return { ...row, fields: fieldsOf(row) }
}

function fieldsOf({ event, payload }: ExportedRow): TableRow['fields'] {
  const reading = readingOf({ ...event, payload }, RECIPES)
  if (reading === null) return NO_FIELDS
  try {
    return readWhole(reading)
  } catch {
    return NO_FIELDS
  }
}

/** Those that stand before the others. */
const FIRST = new Set(['received_at', 'company_id', 'account_id'])

const metaColumns = META_COLUMNS.map(({ field, name, type }): TableColumn => {
  if (field === 'receivedAt') return { name, type: 'time', read: ({ event }) => event.receivedAt }
  if (field === 'channelRef')
    return { name, type: 'text', read: ({ event }) => (event.erasedAt === null ? event.channelRef : null) }
  return { name, type: type === 'integer' ? 'number' : 'text', read: ({ event }) => event[field] }
})

export const TABLE_COLUMNS: readonly TableColumn[] = [
  { name: 'id', type: 'number', read: ({ event }) => event.id },
  { name: 'kind', type: 'text', read: ({ event }) => event.kind },
  { name: 'revises', type: 'number', read: ({ event }) => event.revises },
  ...metaColumns.filter(({ name }) => FIRST.has(name)),
  { name: 'contact_name', type: 'text', read: ({ fields }) => fields.contactName },
  { name: 'contact_email', type: 'text', read: ({ fields }) => fields.contactEmail },
  { name: 'message_type', type: 'text', read: ({ fields }) => fields.messageType },
  { name: 'text', type: 'text', read: ({ fields }) => fields.text },
  { name: 'state', type: 'text', read: ({ state }) => state ?? null },
  { name: 'erased_at', type: 'time', read: ({ event }) => event.erasedAt },
  ...metaColumns.filter(({ name }) => !FIRST.has(name)),
  { name: 'size', type: 'number', read: ({ event }) => event.size },
  {
    name: 'sha256',
    type: 'text',
    read: ({ event }) => (event.erasedAt === null ? Buffer.from(event.sha256).toString('hex') : null),
  },
  { name: 'payload', type: 'bytes', read: ({ payload }) => payload },
]
