// What a database knows of its past: when it was backed up, and which ids another state of it may have given out.
//
// A restored database lacks the newest messages of the old one, whose ids followers have seen. So ids jump (`epochStart`), and
// the ids in between are recorded as a gap: a cursor in it belongs to the old state.
//
// Promises
// - No id below the end of a gap is given out after it was recorded.
// - A cursor that this state of the database gave out is never in a gap.

import type { IdGap } from '../../model/id-gaps.ts'
import type { Tenant } from '../../model/principal.ts'

export interface RecoveryStore {
  /**
   * Null for an id that this state of the database gave out. For any other, in a gap or above the last id: the id after which a
   * follower that has come that far can go on. A tenant that was moved here has ids of this database only from then on.
   */
  resumePointOf(tenant: Tenant, cursor: number): Promise<number | null>
  /** Jumps ids and records the gap. No server may run: each reads the gaps when it starts. */
  beginEpoch(now: number): Promise<IdGap>
  /** When the last backup that was finished began; null if there is none. */
  lastBackupAt(): Promise<number | null>
}
