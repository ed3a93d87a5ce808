// The index: everything derived from the journal. It can be rebuilt.
//
// Two cursors go through the journal. The first makes entries, conversations and counts: an event behind it can be listed and
// claimed. The second makes search words, which cost far more: it never passes the first and may be far behind it.
//
// Promises
// - A step of either cursor takes the next rows of the journal in id order, derives, and moves the cursor, all in one transaction: it
//   can be killed at any point and resumed, and two runners cannot index a row twice.
// - A row that cannot be derived, or whose words cannot be written, is marked `unindexed` with its reason and skipped; it
//   never blocks the rows behind it.
// - A row that cannot be read is marked: `unindexed` if only its payload is lost, else by its id. It never blocks the rows behind it.
// - A rebuild empties the derived tables in bounded steps and starts from the first row; its result equals the index
//   before, row for row. It never touches primary data.

import type { StepLimits } from '../../model/index-step.ts'

export type IndexLimits = StepLimits

export interface WordLimits extends StepLimits {
  /** Different words of one event, at most MAX_WORDS. */
  readonly maxWords: number
}

export interface IndexProgress {
  /** The last journal id that is indexed: it can be listed and claimed. */
  readonly cursor: number
  /** Journal rows and resends that are not indexed yet. */
  readonly lag: number
  /** The last journal id whose words are indexed: a search finds it. */
  readonly searchable: number
  /** Journal rows whose words are not indexed yet, whether their entries are or not. */
  readonly searchLag: number
  /** True while a rebuild is still emptying the derived tables. */
  readonly clearing: boolean
}

export interface IndexStepResult extends IndexProgress {
  /** Rows that this step derived, including unindexed ones. */
  readonly indexed: number
  readonly unindexed: number
  /** Ids that this step passed over, since a damaged page hides their rows. */
  readonly unreadable: number
  /** The step reached its limits: the next one has work to do. */
  readonly more: boolean
}

export interface IndexStore {
  /** Moves the first cursor. */
  step(limits: IndexLimits): Promise<IndexStepResult>
  /** Moves the second cursor, at most up to the first. */
  stepWords(limits: WordLimits): Promise<IndexStepResult>
  progress(): Promise<IndexProgress>
  /** Requests a rebuild of everything; the following steps carry it out, on any node. */
  requestRebuild(): Promise<void>
  /** Deletes traffic counts of minutes and hours before these times. */
  pruneTraffic(minutesBefore: number, hoursBefore: number): Promise<void>
}
