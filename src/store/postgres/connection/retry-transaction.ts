// Retries a transaction on 40001 and 40P01: the failed try left nothing, and no caller was answered yet. It must begin
// with a read or a lock, or with a statement that may commit by itself.

import type { Connection } from './connection.ts'
import { isRetryable, storeFailure } from './failure.ts'
import type { Pool } from './pool.ts'

const TRIES = 5

export async function retryTransaction<T>(pool: Pool, work: (connection: Connection) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await pool.transaction(work, 'reads')
    } catch (error) {
      if (attempt === TRIES || !isRetryable(storeFailure(error))) throw error
    }
  }
}
