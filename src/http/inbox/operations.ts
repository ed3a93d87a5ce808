// Reading the inbox: what its routes have in common. The operations themselves are in the files beside this one.

import type { Problem } from '../../model/errors.ts'
import type { Operation } from '../call.ts'
import type { InboxOperationName } from '../routes.ts'
import { conversationOperations } from './conversations.ts'
import { eventOperations } from './events.ts'
import { listOperations } from './lists.ts'
import type { InboxOptions } from './options.ts'

export function createInboxOperations(options: InboxOptions): Record<InboxOperationName, Operation> {
  const operations = { ...listOperations(options), ...eventOperations(options), ...conversationOperations(options) }
  return Object.fromEntries(
    Object.entries<Operation>(operations).map(([name, operation]) => [name, withUnavailableAnswer(operation)]),
  ) as Record<InboxOperationName, Operation>
}

const UNREACHABLE: Problem = {
  code: 'storage_unavailable',
  message: 'The database does not answer. Send the same request again after Retry-After seconds.',
}

/** A store that is away for a moment is no bug of ours: the caller may ask again. */
export function withUnavailableAnswer(operation: Operation): Operation {
  return async (call) => {
    try {
      return await operation(call)
    } catch (error) {
      if ((error as { kind?: unknown }).kind === 'unavailable') return UNREACHABLE
      throw error
    }
  }
}
