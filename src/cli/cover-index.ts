// Waits until the index covers every message that is stored now: by its server, or by this command if none runs.

import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config.ts'
import type { Store } from '../store/contract/store.ts'
import { indexLimits } from './index-limits.ts'
import { inSteps } from './output.ts'

const POLL_MS = 200

export async function coverIndex(store: Store, config: Config): Promise<void> {
  const { newest } = await store.inbox.coverage()
  await inSteps('index', async (say) => {
    for (;;) {
      const isServed = (await store.nodes.live()).length > 0
      // On PostgreSQL a step also moves the watermark.
      if (!isServed) await store.index.step(indexLimits(config))
      const { covered } = await store.inbox.coverage()
      if (covered.events >= newest.events) return
      say(`${newest.events - covered.events} rows left`)
      if (isServed) await pause(POLL_MS)
    }
  })
}
