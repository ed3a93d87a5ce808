// Makes a read wait until the index covers every id given out before the read arrived, at most MAX_WAIT_MS: a search waits for
// the words, every other read for the entries. Then the read answers from the index as it is and reports how many rows are missing.

import { coalesceCalls } from '../runtime/coalesce-calls.ts'
import type { Coverage, InboxReader } from '../store/contract/inbox.ts'

export const MAX_WAIT_MS = 2000
/** The store is asked again after each step, and, as another node may be the one that indexes, at growing intervals. */
const FIRST_POLL_MS = 2
const LONGEST_POLL_MS = 100

/** What of the index a read needs. */
export type Needed = 'entries' | 'words'
export type AwaitIndex = (needed?: Needed) => Promise<number>

export interface AwaitIndexOptions {
  readonly inbox: Pick<InboxReader, 'coverage'>
  /** Tells the indexer that a reader waits; repeated, since each hint counts for one round. */
  readonly hurry: (needed: Needed) => void
  /** Resolves after the next step of this node that indexed anything, or when the time is over. */
  readonly stepped: (timeoutMs: number) => Promise<void>
  readonly maxWaitMs?: number
}

/** Resolves with the number of rows that the index still lacks, usually 0. */
export function createAwaitIndex({ inbox, hurry, stepped, maxWaitMs = MAX_WAIT_MS }: AwaitIndexOptions): AwaitIndex {
  // Many reads may wait for one step.
  const askCoverage = coalesceCalls(() => inbox.coverage())
  return async (needed = 'entries') => {
    let coverage = await askCoverage()
    const { newest } = coverage
    if (lagOf(newest, coverage, needed) === 0) return 0
    const deadline = performance.now() + maxWaitMs
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(2 * pollMs, LONGEST_POLL_MS)) {
      const left = deadline - performance.now()
      if (left <= 0) return lagOf(newest, coverage, needed)
      hurry(needed)
      await stepped(Math.min(pollMs, left))
      coverage = await askCoverage()
      if (lagOf(newest, coverage, needed) === 0) return 0
    }
  }
}

function lagOf(newest: Coverage['newest'], { covered }: Coverage, needed: Needed): number {
  const events = needed === 'words' ? covered.words : covered.events
  return Math.max(0, newest.events - events) + Math.max(0, newest.resends - covered.resends)
}
