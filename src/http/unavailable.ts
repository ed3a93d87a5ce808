// Turns a store that cannot be reached, or a missing key of secrets, into an answer that says so.

import type { Problem } from '../model/errors.ts'
import { SecretUnreadable } from '../runtime/secret-box.ts'
import { SecretsKeyMissing } from '../runtime/secrets.ts'

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

/** The same if secrets cannot be sealed or opened, which is a matter of the operator: the answer names no file. */
export async function orSecretsUnavailable<T>(work: () => Promise<T>): Promise<T | Problem> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof SecretsKeyMissing || error instanceof SecretUnreadable) return { code: 'secrets_unavailable' }
    throw error
  }
}
