// Reading the inbox: what its routes have in common. The operations themselves are in the files beside this one.

import type { Promote } from '../../intake/promote.ts'
import type { Problem } from '../../model/errors.ts'
import type { Tenant } from '../../model/principal.ts'
import type { StoredRefusal } from '../../model/refusal.ts'
import type { Claims } from '../../processing/claims.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { EventReader } from '../../store/contract/events.ts'
import type { InboxReader } from '../../store/contract/inbox.ts'
import type { Operation } from '../call.ts'
import type { InboxOperationName } from '../routes.ts'
import { conversationOperations } from './conversations.ts'
import { eventOperations } from './events.ts'
import { listOperations } from './lists.ts'

export interface InboxOptions {
  readonly inbox: InboxReader
  readonly events: EventReader
  readonly claims: Pick<Claims, 'states' | 'counts' | 'subscriptions'>
  readonly clock: Clock
  readonly listRefusals: (tenant: Tenant, beforeId: number, limit: number) => Promise<StoredRefusal[]>
  /** Waits until the index covers what there was at the call, for a while; resolves with what it still lacks. */
  readonly awaitIndex: () => Promise<number>
  readonly promote: Promote
}

export function createInboxOperations(options: InboxOptions): Record<InboxOperationName, Operation> {
  const operations = { ...listOperations(options), ...eventOperations(options), ...conversationOperations(options) }
  return Object.fromEntries(
    Object.entries<Operation>(operations).map(([name, operation]) => [name, whileStoreAnswers(operation)]),
  ) as Record<InboxOperationName, Operation>
}

const UNREACHABLE: Problem = {
  code: 'storage_unavailable',
  message: 'The store does not answer. Send the same request again after Retry-After seconds.',
}

/** A store that is away for a moment is no bug of ours: the caller may ask again. */
export function whileStoreAnswers(operation: Operation): Operation {
  return async (call) => {
    try {
      return await operation(call)
    } catch (error) {
      if ((error as { kind?: unknown }).kind === 'unavailable') return UNREACHABLE
      throw error
    }
  }
}
