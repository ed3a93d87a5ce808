// A transaction that is tried again when another one got in its way. Nothing of the first try stays, and nobody was
// answered yet. It begins with a look or a lock, or with what may stand by itself.

import type { Connection } from './connection.ts'
import { isRetryable, storeFailure } from './failure.ts'
import type { Pool } from './pool.ts'

const TRIES = 5

export async function together<T>(pool: Pool, work: (connection: Connection) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await pool.transaction(work, 'reads')
    } catch (error) {
      if (attempt === TRIES || !isRetryable(storeFailure(error))) throw error
    }
  }
}
