// Pages of the event list, and merging a new first page into them.

import type { EventPage } from '../../../kits/typescript/src/schema.ts'

export interface EventPages {
  readonly pages: EventPage[]
  readonly pageParams: (string | null)[]
}

/** A longer list is reset to its first page. */
export const MAX_ROWS = 20_000

/** Puts a new first page on top. If it does not overlap with the known rows, events may be missing: the list is reset. */
export function mergeFirstPage(known: EventPages, fresh: EventPage): EventPages {
  const rows = known.pages.flatMap((page) => page.events)
  const freshIds = new Set(fresh.events.map(({ id }) => id))
  const meets = rows.some(({ id }) => freshIds.has(id))
  if (!meets || fresh.next === null || rows.length > MAX_ROWS) return { pages: [fresh], pageParams: [null] }
  const oldest = Math.min(...freshIds)
  const [first, ...others] = known.pages.map((page) => ({
    ...page,
    events: page.events.filter(({ id }) => id < oldest),
  }))
  const { index_lag: _lag, ...firstPage } = first!
  const lag = fresh.index_lag === undefined ? {} : { index_lag: fresh.index_lag }
  return {
    pages: [{ ...firstPage, ...lag, events: [...fresh.events, ...firstPage.events] }, ...others],
    pageParams: known.pageParams,
  }
}
