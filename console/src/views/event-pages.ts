// Pages of events, and how a fresh first page is put before them.

import type { EventPage } from '../api/schema.ts'

export interface EventPages {
  readonly pages: EventPage[]
  readonly pageParams: (string | null)[]
}

/** More rows than this are not kept: the list begins anew. */
export const MAX_ROWS = 20_000

/**
 * The fresh first page in place of what it covers, before what is older. If the two do not meet, something is missing between
 * them: begin anew.
 */
export function withFreshPage(known: EventPages, fresh: EventPage): EventPages {
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
