// The limit and the cursor of a page, as parameters of a query. One that we did not make is refused.

import { readCursor, writeCursor } from '../../model/list-cursor.ts'
import { type Parameter, wholeNumber } from '../../runtime/parameter.ts'
import type { EventPosition } from '../../store/contract/inbox.ts'

/** How much of a list a page shows. */
export const DEFAULT_LIMIT = 50
export const limitParameter = wholeNumber(1, 200)

/** A cursor of a list by id, or of one by time. */
export const eventCursorParameter: Parameter<EventPosition> = (text) => {
  const position = readCursor(text)
  if (!position) throw new Error('must be the next of an earlier page, as it was given')
  return position
}

/** A cursor of a list by id. */
export const cursorParameter: Parameter<number> = (text) => {
  const { id, receivedAt } = eventCursorParameter(text)
  if (receivedAt !== null) throw new Error('is of another list')
  return id
}

/** The cursor for what follows a page, where one row more than the page was asked for. */
export function nextAfter<T>(rows: readonly T[], limit: number, idOf: (row: T) => number): string | null {
  return rows.length > limit ? writeCursor({ id: idOf(rows[limit - 1]!), receivedAt: null }) : null
}
