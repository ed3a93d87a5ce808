// Retries a transaction on 40001 (serialization failure) and 40P01 (deadlock). The database has rolled the failed try back, and no
// caller was answered. The transaction begins with a read or a lock, so BEGIN can travel with it.

import type { Connection } from './connection.ts'
import { isRetryable, storeFailure } from './failure.ts'
import type { Pool } from './pool.ts'

const MAX_TRIES = 5

export async function retryTransaction<T>(pool: Pool, work: (connection: Connection) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await pool.transaction(work, 'reads')
    } catch (error) {
      if (attempt === MAX_TRIES || !isRetryable(storeFailure(error))) throw error
    }
  }
}
