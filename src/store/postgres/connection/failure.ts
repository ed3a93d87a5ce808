// Classifies failed statements by SQLSTATE. An error without one did not come from the server: the connection is gone
// or silent, and the outcome of the statement is unknown.

import pg from 'pg'
import { StoreFailure } from '../../contract/failure.ts'

/** Serialization failure and deadlock: a retry may succeed. */
const RETRY = new Set(['40001', '40P01'])

/** Our tables or functions are missing: no retry brings them back. */
const SCHEMA_GONE = new Set(['42P01', '42883', '42703', '3F000'])

/** data_corrupted and index_corrupted: a page has the wrong checksum, or its content makes no sense. */
const DAMAGE = new Set(['XX001', 'XX002'])

/** Raised by the triggers of a frozen database: an operator froze it, so no retry helps. */
export const FROZEN_STATE = '57I01'

/** Raised by the trigger of a tenant that was moved: its row fails alone. */
export const MOVED_STATE = 'PI001'

/** Failures of the server or the connection, by SQLSTATE class. All other classes are about the data. */
const TROUBLE = new Set(['08', '28', '3D', '40', '53', '57', '58', 'XX', 'F0'])
/** Further codes: a read-only server, a lock timeout, a revoked permission. */
const TROUBLE_CODES = new Set(['25006', '25P02', '25P03', '25P04', '55P03', '42501'])

/** The session changed: a pooler dropped our prepared statements, or a migration changed their tables. */
const STALE_SESSION = new Set(['26000', '42P05', '0A000'])

/**
 * Null if the error did not come from the server. (The code of a system error, such as EPIPE, may look like a
 * SQLSTATE.)
 */
export function sqlState(error: unknown): string | null {
  return error instanceof pg.DatabaseError ? (error.code ?? null) : null
}

/** A host with several addresses fails with an error that has a code and no message. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message || String((error as { code?: unknown }).code ?? error.name)
}

export function storeFailure(error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error
  const message = messageOf(error)
  // A value that cannot be sent, found before anything was sent.
  if (error instanceof TypeError || error instanceof RangeError) {
    return new StoreFailure('rejected', message, { cause: error })
  }
  const code = sqlState(error)
  if (code === null)
    return new StoreFailure('unavailable', `the database cannot be reached: ${message}`, { cause: error })
  if (SCHEMA_GONE.has(code)) return new StoreFailure('fatal', message, { cause: error })
  if (DAMAGE.has(code)) return new StoreFailure('damaged', `a damaged page was met: ${message}`, { cause: error })
  const trouble = TROUBLE.has(code.slice(0, 2)) || TROUBLE_CODES.has(code) || STALE_SESSION.has(code)
  return new StoreFailure(trouble ? 'unavailable' : 'rejected', message, { cause: error })
}

/** The result of a read; null if a damaged page hides it. Only outside of a transaction, which the failure would end. */
export async function unlessDamaged<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading
  } catch (error) {
    if (storeFailure(error).kind !== 'damaged') throw error
    return null
  }
}

export function isRetryable(failure: StoreFailure): boolean {
  return RETRY.has(sqlState(failure.cause) ?? '')
}

/**
 * Whether the connection must be dropped after this failure: the server closed it, cannot be reached, or no longer
 * accepts writes.
 */
export function endsConnection(failure: StoreFailure): boolean {
  const code = sqlState(failure.cause)
  if (code === null) return failure.kind !== 'rejected'
  if (DAMAGE.has(code)) return false
  return STALE_SESSION.has(code) || /^(08|57P|58|XX|25006|25P03|25P04)/.test(code)
}

/** A warning at commit: the data may not be as durable as promised. */
export function notAcknowledged(warning: string): StoreFailure {
  return new StoreFailure('unavailable', `the database did not confirm the commit: ${warning}`)
}
