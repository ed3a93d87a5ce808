// A step of the index on SQLite: what has arrived is filed by the writer, and what is filed is indexed by the indexer. While one
// step is indexed, those after it are filed: whichever of the two threads is held up, the other goes on meanwhile.

import type { IndexLimits, IndexStepResult } from '../contract/indexing.ts'
import type { Executor, IndexOperations, Operations } from './operations.ts'

/** Messages filed in one go: it delays those behind it. */
const SLICE_ROWS = 128
/** In steps: so far filing may be ahead, with those that are indexed at once. */
const MOST_AHEAD = 8

export interface IndexSteps {
  step(limits: IndexLimits): Promise<IndexStepResult>
  /** When those that were begun have ended. */
  settled(): Promise<void>
}

export function createIndexSteps(writer: Executor<Operations>, indexer: Executor<IndexOperations>): IndexSteps {
  /** Rows that were filed and not indexed since. */
  let ahead = 0
  /** Filing goes on until they are so many. The newest step says so, also to what was begun before it. */
  let goal = 0
  let isUrgent = false
  let filing: Promise<void> | null = null
  let slice: Promise<unknown> = Promise.resolve()
  let failed: { readonly reason: unknown } | null = null
  const underWay = new Set<Promise<unknown>>()

  async function fileToGoal(): Promise<void> {
    try {
      for (let hasMore = true; hasMore && ahead < goal; ) {
        const filed = writer.run(isUrgent ? 'fileNow' : 'file', [Math.min(goal - ahead, SLICE_ROWS)])
        slice = filed
        const result = await filed
        ahead += result.rows
        hasMore = result.hasMore
      }
    } catch (reason) {
      failed = { reason }
    } finally {
      filing = null
    }
  }

  /** Until a step has its rows, or there are no more. Then filing goes on by itself. */
  async function fileFor({ maxRows, isLast }: IndexLimits): Promise<void> {
    goal = (isLast ? 1 : MOST_AHEAD) * maxRows
    if (ahead < goal) filing ??= fileToGoal()
    while (filing && ahead < maxRows) await Promise.race([filing, slice.catch(() => {})])
  }

  async function fileAndIndex(limits: IndexLimits): Promise<IndexStepResult> {
    isUrgent = limits.isUrgent === true
    await fileFor(limits)
    const failure = failed
    failed = null
    const result = await indexer.run('indexStep', [limits])
    // Where it found nothing, nothing lies ready, whoever took it: a command beside the server may index, too.
    ahead = result.indexed === 0 ? 0 : Math.max(0, ahead - result.indexed)
    // What is filed already is indexed nevertheless.
    if (failure) throw failure.reason
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
      goal = 0
      await Promise.allSettled([...underWay, filing])
    },
  }
}
