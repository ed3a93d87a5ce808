// A step of the index on SQLite: what has arrived is filed by the writer, and what is filed is indexed by the indexer. While one
// slice is indexed, the next is filed.

import type { IndexLimits, IndexStepResult } from '../contract/indexing.ts'
import type { Executor, IndexOperations, Operations } from './operations.ts'

/** Messages filed in one go: it delays those behind it. */
const SLICE_ROWS = 128

export interface IndexSteps {
  step(limits: IndexLimits): Promise<IndexStepResult>
  /** When those that were begun have ended. */
  settled(): Promise<void>
}

export function createIndexSteps(writer: Executor<Operations>, indexer: Executor<IndexOperations>): IndexSteps {
  /** Begun by the step before. */
  let ahead: Promise<boolean> | null = null
  const underWay = new Set<Promise<unknown>>()
  /** Said by the newest step: also for what was begun before it. */
  let isUrgent = false

  /** As many as a step takes. True if there are more. */
  async function file({ maxRows }: IndexLimits): Promise<boolean> {
    for (let left = maxRows; left > 0; ) {
      const { rows, hasMore } = await writer.run(isUrgent ? 'fileNow' : 'file', [Math.min(left, SLICE_ROWS)])
      if (!hasMore) return false
      left -= rows
    }
    return true
  }

  async function fileAndIndex(limits: IndexLimits): Promise<IndexStepResult> {
    isUrgent = limits.isUrgent === true
    const filing = ahead ?? file(limits)
    ahead = null
    const filed = await Promise.allSettled([filing])
    if (filed[0].status === 'fulfilled' && filed[0].value && !limits.isLast) {
      ahead = file(limits)
      // Whoever takes the next step is told.
      ahead.catch(() => {})
    }
    const result = await indexer.run('indexStep', [limits])
    // What is filed already is indexed nevertheless.
    if (filed[0].status === 'rejected') throw filed[0].reason
    return result
  }

  return {
    step: async (limits) => {
      const step = fileAndIndex(limits)
      underWay.add(step)
      try {
        return await step
      } finally {
        underWay.delete(step)
      }
    },
    settled: async () => {
      await Promise.allSettled([...underWay])
      await Promise.allSettled([ahead])
    },
  }
}
