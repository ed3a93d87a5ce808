// How many events and revisions a journal holds for its refs, counted by the database.

export interface RefCounts {
  readonly events: number
  readonly refs: number
  /** Refs with more than one event. */
  readonly twice: number
  readonly revisions: number
}

export const countRefsIn = (table: string): string => `SELECT count(*) FILTER (WHERE kind = 'event') AS events,
    count(DISTINCT source_ref) AS refs, count(*) FILTER (WHERE kind = 'revision') AS revisions,
    (SELECT count(*) FROM (SELECT 1 FROM ${table} WHERE kind = 'event' GROUP BY source_ref HAVING count(*) > 1) t) AS twice
  FROM ${table}`

export function refCounts(row: Record<string, unknown>): RefCounts {
  return {
    events: Number(row.events),
    refs: Number(row.refs),
    twice: Number(row.twice),
    revisions: Number(row.revisions),
  }
}
