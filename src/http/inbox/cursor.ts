// The cursor of a page: opaque to clients, base64url of a small JSON object to us. One that we did not make is refused.

import type { EventPosition } from '../../store/contract/inbox.ts'
import { type Parameter, wholeNumber } from '../query.ts'

const MAX_LENGTH = 100
const MAX_ID = 999_999_999_999_999

/** How much of a list a page shows. */
export const DEFAULT_LIMIT = 50
export const limitParameter = wholeNumber(1, 200)

export function writeCursor({ id, receivedAt }: EventPosition): string {
  const fields = receivedAt === null ? { id } : { id, at: receivedAt }
  return Buffer.from(JSON.stringify(fields)).toString('base64url')
}

/** A cursor of a list by id, or of one by time. */
export const eventCursorParameter: Parameter<EventPosition> = (text) => {
  const position = text.length <= MAX_LENGTH ? readCursor(text) : null
  // Only what we wrote ourselves comes out as it went in.
  if (!position || writeCursor(position) !== text)
    throw new Error('must be the next of an earlier page, as it was given')
  return position
}

/** A cursor of a list by id. */
export const cursorParameter: Parameter<number> = (text) => {
  const { id, receivedAt } = eventCursorParameter(text)
  if (receivedAt !== null) throw new Error('is of another list')
  return id
}

function readCursor(text: string): EventPosition | null {
  try {
    const fields = JSON.parse(Buffer.from(text, 'base64url').toString()) as { id?: unknown; at?: unknown } | null
    if (!isNumber(fields?.id) || (fields.at !== undefined && !isNumber(fields.at))) return null
    return { id: fields.id, receivedAt: fields.at ?? null }
  } catch {
    return null
  }
}

function isNumber(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_ID
}

/** The cursor for what follows a page, where one row more than the page was asked for. */
export function nextAfter<T>(rows: readonly T[], limit: number, idOf: (row: T) => number): string | null {
  return rows.length > limit ? writeCursor({ id: idOf(rows[limit - 1]!), receivedAt: null }) : null
}
