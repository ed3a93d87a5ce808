// Keeps a damaged page of the dedupe keys from failing more messages than those that need it: a batch that met one has stored
// nothing, and is appended again in halves, until what fails is one message.

import type { AppendItem, Appender, AppendOutcome } from './contract/append.ts'
import { StoreFailure } from './contract/failure.ts'

export function appendApart(append: Appender['append']): Appender['append'] {
  const attempt = async (items: readonly AppendItem[]): Promise<AppendOutcome[]> => {
    try {
      return await append(items)
    } catch (error) {
      if (!(error instanceof StoreFailure) || error.kind !== 'damaged') throw error
      if (items.length === 1) return [{ outcome: 'failed', reason: error.message, isDamaged: true }]
      const half = Math.ceil(items.length / 2)
      // In order: an item may repeat an earlier one.
      const first = await attempt(items.slice(0, half))
      return [...first, ...(await attempt(items.slice(half)))]
    }
  }
  return attempt
}
