// The index: everything that is derived from the journal and can be rebuilt from it.
//
// Promises
// - A step takes the next rows of the journal in id order, derives, and moves the cursor, all in one transaction: it can
//   be killed anywhere and resumed, and two runners cannot index a row twice.
// - A row that cannot be derived is marked `unindexed` with its reason and passed over; it never stops the rows behind it.
// - A rebuild empties the derived tables in bounded steps and starts from the first row; what it arrives at is, row for
//   row, what it was before. Primary data is never touched.

import type { StepLimits } from '../../model/index-step.ts'

export type IndexLimits = StepLimits

export interface IndexProgress {
  /** The last journal id that is indexed. */
  readonly cursor: number
  /** Journal rows and resends that are not indexed yet. */
  readonly lag: number
  /** True while a rebuild is still emptying the derived tables. */
  readonly clearing: boolean
}

export interface IndexStepResult extends IndexProgress {
  /** Rows this step derived, the unindexed ones included. */
  readonly indexed: number
  readonly unindexed: number
  /** The step ended at its limits: more can be done at once. */
  readonly more: boolean
}

export interface IndexStore {
  step(limits: IndexLimits): Promise<IndexStepResult>
  progress(): Promise<IndexProgress>
  /** Asks for a rebuild; the following steps, by whichever runner, carry it out. */
  requestRebuild(): Promise<void>
  /** Lets go of the counts of traffic of minutes and hours before these. */
  pruneTraffic(minutesBefore: number, hoursBefore: number): Promise<void>
}
