// Paging of lists: the query parameters limit and cursor, and the cursor of the next page.

import { readCursor, writeCursor } from '../model/list-cursor.ts'
import { type Parameter, wholeNumber } from '../runtime/parameter.ts'
import type { EventPosition } from '../store/contract/inbox.ts'
import type { JsonPage } from '../store/contract/lists.ts'
import { rawJsonAnswer } from './call.ts'
import type { Answer } from './problem.ts'

export const DEFAULT_LIMIT = 50
export const limitParameter = wholeNumber(1, 200)

/** A cursor; `read` gives null for a text that is not one of this list. */
export function cursorParameter<T>(read: (text: string) => T | null): Parameter<T> {
  return (text) => {
    const position = read(text)
    if (position === null) throw new Error('must be the value of next from an earlier page, unchanged')
    return position
  }
}

/** The cursor of a list by id or by time. */
export const eventCursorParameter: Parameter<EventPosition> = cursorParameter(readCursor)

/** The cursor of a list by id. */
export const idCursorParameter: Parameter<number> = (text) => {
  const { id, receivedAt } = eventCursorParameter(text)
  if (receivedAt !== null) throw new Error('belongs to another list')
  return id
}

/** The first `limit` rows and the cursor of the next page. The caller reads one row more than the limit. */
export function pageOf<T>(rows: readonly T[], limit: number, cursorOf: (last: T) => string) {
  const page = rows.slice(0, limit)
  return { page, next: rows.length > limit ? cursorOf(page.at(-1)!) : null }
}

/** 200 with a page that the store made: its entries are copied, never parsed or encoded. */
export function pageAnswer(name: string, { entries, next, partial }: JsonPage, lag = 0): Answer {
  const rest = JSON.stringify({
    next: next && writeCursor(next),
    ...(partial ? { partial: true } : {}),
    ...lagField(lag),
  })
  return rawJsonAnswer(Buffer.concat([Buffer.from(`{"ok":true,"${name}":`), entries, Buffer.from(`,${rest.slice(1)}`)]))
}

/** Present only while the index lags. */
export function lagField(lag: number): { readonly index_lag?: number } {
  return lag > 0 ? { index_lag: lag } : {}
}
