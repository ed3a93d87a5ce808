// Turns a store that cannot be reached into an answer that asks the caller to try again.

import type { Problem } from '../model/errors.ts'

const UNREACHABLE: Problem = {
  code: 'storage_unavailable',
  message: 'The database does not answer. Send the same request again after Retry-After seconds.',
}

/** The result of `work`, or the problem if the store cannot be reached. */
export async function orUnavailable<T>(work: () => T | Promise<T>, problem = UNREACHABLE): Promise<T | Problem> {
  try {
    return await work()
  } catch (error) {
    const kind = (error as { kind?: unknown } | null)?.kind
    if (kind === 'unavailable') return problem
    if (kind === 'damaged') return { code: 'storage_damaged' }
    throw error
  }
}
