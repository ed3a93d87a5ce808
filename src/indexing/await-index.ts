// Makes a read wait until the index covers every id given out before the read arrived, at most MAX_WAIT_MS. Then the
// read answers from the index as it is and reports how many rows are missing.

import { setTimeout as pause } from 'node:timers/promises'
import type { Coverage, InboxReader } from '../store/contract/inbox.ts'

export const MAX_WAIT_MS = 2000
/** Another node may be the one that indexes, so the store is polled, at growing intervals. */
const FIRST_POLL_MS = 2
const LONGEST_POLL_MS = 100

export interface AwaitIndexOptions {
  readonly inbox: Pick<InboxReader, 'coverage'>
  /** Tells the indexer that a reader waits; repeated, since each hint counts for one step. */
  readonly hurry: () => void
  readonly maxWaitMs?: number
}

/** Resolves with the number of rows that the index still lacks, usually 0. */
export function createAwaitIndex({ inbox, hurry, maxWaitMs = MAX_WAIT_MS }: AwaitIndexOptions): () => Promise<number> {
  return async () => {
    let coverage = await inbox.coverage()
    const { newest } = coverage
    if (lagOf(newest, coverage) === 0) return 0
    const deadline = performance.now() + maxWaitMs
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(2 * pollMs, LONGEST_POLL_MS)) {
      const left = deadline - performance.now()
      if (left <= 0) return lagOf(newest, coverage)
      hurry()
      await pause(Math.min(pollMs, left))
      coverage = await inbox.coverage()
      if (lagOf(newest, coverage) === 0) return 0
    }
  }
}

function lagOf(newest: Coverage['newest'], { covered }: Coverage): number {
  return Math.max(0, newest.events - covered.events) + Math.max(0, newest.resends - covered.resends)
}
