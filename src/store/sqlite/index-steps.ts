// A step of the index on SQLite: what has arrived is filed by the writer, and what is filed is indexed by the indexer. While one
// step is indexed, those after it are filed: whichever of the two threads is held up, the other goes on meanwhile.

import type { IndexLimits, IndexStepResult } from '../contract/indexing.ts'
import type { Executor, IndexOperations, Operations } from './operations.ts'

/** Messages filed in one go: it delays those behind it. */
const SLICE_ROWS = 128
/** In steps: so far filing may be ahead of the index. */
const MOST_AHEAD = 4

export interface IndexSteps {
  step(limits: IndexLimits): Promise<IndexStepResult>
  /** When those that were begun have ended. */
  settled(): Promise<void>
}

export function createIndexSteps(writer: Executor<Operations>, indexer: Executor<IndexOperations>): IndexSteps {
  /** Begun by the steps before, one after the other. True: there are more. */
  let ahead: Promise<boolean>[] = []
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

  function fileAhead(limits: IndexLimits): void {
    while (ahead.length < MOST_AHEAD) {
      const last = ahead.at(-1)
      const next = last ? last.then((hasMore) => hasMore && file(limits)) : file(limits)
      // Whoever takes the step is told.
      next.catch(() => {})
      ahead.push(next)
    }
  }

  async function fileAndIndex(limits: IndexLimits): Promise<IndexStepResult> {
    isUrgent = limits.isUrgent === true
    const [filed] = await Promise.allSettled([ahead.shift() ?? file(limits)])
    const hasMore = filed.status === 'fulfilled' && filed.value
    // Those behind it have found nothing, or failed with it.
    if (!hasMore) ahead = []
    else if (!limits.isLast) fileAhead(limits)
    const result = await indexer.run('indexStep', [limits])
    // What is filed already is indexed nevertheless.
    if (filed.status === 'rejected') throw filed.reason
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
      await Promise.allSettled(ahead)
    },
  }
}
