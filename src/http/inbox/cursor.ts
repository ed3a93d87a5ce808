// Query parameters for paging: limit and cursor. A cursor that this service did not make is refused.

import { readCursor, writeCursor } from '../../model/list-cursor.ts'
import { type Parameter, wholeNumber } from '../../runtime/parameter.ts'
import type { EventPosition } from '../../store/contract/inbox.ts'

/** How much of a list a page shows. */
export const DEFAULT_LIMIT = 50
export const limitParameter = wholeNumber(1, 200)

/** A cursor of a list by id, or of one by time. */
export const eventCursorParameter: Parameter<EventPosition> = (text) => {
  const position = readCursor(text)
  if (!position) throw new Error('must be the value of next from an earlier page, unchanged')
  return position
}

/** A cursor of a list by id. */
export const cursorParameter: Parameter<number> = (text) => {
  const { id, receivedAt } = eventCursorParameter(text)
  if (receivedAt !== null) throw new Error('belongs to another list')
  return id
}

/** The cursor for what follows a page, where one row more than the page was asked for. */
export function nextAfter<T>(rows: readonly T[], limit: number, idOf: (row: T) => number): string | null {
  return rows.length > limit ? writeCursor({ id: idOf(rows[limit - 1]!), receivedAt: null }) : null
}
