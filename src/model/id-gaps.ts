// Gaps in the ids of events: ids that were given out before a restore and never again. Without gaps, the difference of two ids
// is the number of rows between them.

/** Ids above `after` and below `before` belong to another state of the database. New ids begin above `before`. */
export interface IdGap {
  readonly after: number
  readonly before: number
}

/** How far ids jump after a restore, at least: more than a database gives out between its last backup and its end. */
export const EPOCH_IDS = 1_000_000_000

/** The jump grows with the time, faster than ids are given out: two restores of one backup share no new id. */
const IDS_PER_SECOND = 10_000
const SINCE = Date.UTC(2026)

/** Above which id a restored database begins. `lastId`: the last one that it knows. */
export function epochStart(lastId: number, now: number): number {
  return lastId + EPOCH_IDS + Math.max(0, Math.floor((now - SINCE) / 1000)) * IDS_PER_SECOND
}

/**
 * Null for an id that was given out and not lost. Otherwise the last id before it that is still known: of its gap, or of the whole
 * database. `movedAfter`: another database gave out the tenant's ids below it.
 */
export function resumePoint(
  gaps: readonly IdGap[],
  lastId: number,
  cursor: number,
  movedAfter: number | null = null,
): number | null {
  if (movedAfter !== null && cursor > 0 && cursor < movedAfter) return movedAfter
  const gap = inGap(gaps, cursor)
  if (gap) return gap.after
  return cursor > lastId ? lastId : null
}

/** The gap that an id is in. */
export function inGap(gaps: readonly IdGap[], id: number): IdGap | undefined {
  return gaps.find(({ after, before }) => id > after && id < before)
}

/** The id without the gaps below it: differences of such numbers count rows. */
export function withoutGaps(gaps: readonly IdGap[], id: number): number {
  return gaps.reduce((left, { after, before }) => left - Math.max(0, Math.min(id, before) - after), id)
}
