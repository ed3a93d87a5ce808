// What a failed statement means, by its SQLSTATE. What has none never came from the server: the connection is gone or
// silent, and nobody knows what became of the statement.

import pg from 'pg'
import { StoreFailure } from '../../contract/failure.ts'

/** Two transactions got in each other's way; the same again may well succeed. */
const RETRY = new Set(['40001', '40P01'])

/** Our tables or functions are not there (any more): no retry will bring them back. */
const SCHEMA_GONE = new Set(['42P01', '42883', '42703', '3F000'])

/** What the triggers of a frozen database raise: an operator's doing, which no retry changes. */
export const FROZEN_STATE = '57I01'

/** Trouble of the server or of the way to it, by the first two characters. Everything else is about the data. */
const TROUBLE = new Set(['08', '28', '3D', '40', '53', '57', '58', 'XX', 'F0'])
/** Further ones: a server that takes no writes, a lock that took too long, a right that was taken away. */
const TROUBLE_CODES = new Set(['25006', '25P02', '25P03', '25P04', '55P03', '42501'])

/** The session is not what we left it: a pooler forgot our prepared statements, or a migration changed what they read. */
const STALE_SESSION = new Set(['26000', '42P05', '0A000'])

/** Null if it did not come from the server. (The code of a system error, such as EPIPE, may look like a state.) */
export function sqlState(error: unknown): string | null {
  return error instanceof pg.DatabaseError ? (error.code ?? null) : null
}

/** A host with several addresses fails with an error that has a code and no words. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message || String((error as { code?: unknown }).code ?? error.name)
}

export function storeFailure(error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error
  const message = messageOf(error)
  // A value of ours that cannot be sent, found before anything was.
  if (error instanceof TypeError || error instanceof RangeError) {
    return new StoreFailure('rejected', message, { cause: error })
  }
  const code = sqlState(error)
  if (code === null)
    return new StoreFailure('unavailable', `the database cannot be reached: ${message}`, { cause: error })
  if (SCHEMA_GONE.has(code)) return new StoreFailure('fatal', message, { cause: error })
  const trouble = TROUBLE.has(code.slice(0, 2)) || TROUBLE_CODES.has(code) || STALE_SESSION.has(code)
  return new StoreFailure(trouble ? 'unavailable' : 'rejected', message, { cause: error })
}

export function isRetryable(failure: StoreFailure): boolean {
  return RETRY.has(sqlState(failure.cause) ?? '')
}

/**
 * Whether a connection may be used again after this failure. Not when the server said good-bye, cannot be reached, or turned
 * out to take no writes any more.
 */
export function endsConnection(failure: StoreFailure): boolean {
  const code = sqlState(failure.cause)
  if (code === null) return failure.kind !== 'rejected'
  return STALE_SESSION.has(code) || /^(08|57P|58|XX|25006|25P03|25P04)/.test(code)
}

/** Since the commit: a warning means that what was written may not be where it was promised to be. */
export function notAcknowledged(warning: string): StoreFailure {
  return new StoreFailure('unavailable', `the database did not confirm the commit: ${warning}`)
}
