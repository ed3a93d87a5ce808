// Builds the index of a database that no server uses yet.

import { loadConfig } from '../../config.ts'
import { indexLimits } from '../index-limits.ts'
import { withStore } from '../open.ts'
import { createProgress } from '../output.ts'

/** The index is not copied: it is built from the copied journal. */
export function buildIndex(databaseUrl: string): Promise<void> {
  const limits = indexLimits(loadConfig(process.env))
  const progress = createProgress('index')
  return withStore(
    async (store) => {
      for (;;) {
        await store.index.step(limits)
        const { lag, searchLag, clearing } = await store.index.stepWords(limits)
        progress.say(`${Math.max(lag, searchLag)} rows left`)
        if (lag === 0 && searchLag === 0 && !clearing) break
      }
    },
    { databaseUrl },
  ).finally(progress.end)
}
