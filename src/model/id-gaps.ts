// Gaps in the ids of events: ids that were given out before a restore and never again. Without gaps, the difference of two ids
// is the number of rows between them.

/** Ids above `after` and below `before` belong to another state of the database. New ids begin above `before`. */
export interface IdGap {
  readonly after: number
  readonly before: number
}

/** How far ids jump after a restore: more than a database gives out between its last backup and its end. */
export const EPOCH_IDS = 1_000_000_000

/**
 * Null for an id that was given out and not lost. Otherwise the last id before it that is still known: of its gap, or of the whole
 * database.
 */
export function resumePoint(gaps: readonly IdGap[], lastId: number, cursor: number): number | null {
  const gap = gaps.find(({ after, before }) => cursor > after && cursor < before)
  if (gap) return gap.after
  return cursor > lastId ? lastId : null
}

/** The id without the gaps below it: differences of such numbers count rows. */
export function withoutGaps(gaps: readonly IdGap[], id: number): number {
  return gaps.reduce((left, { after, before }) => left - Math.max(0, Math.min(id, before) - after), id)
}
