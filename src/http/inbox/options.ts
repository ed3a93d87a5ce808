// The services that inbox operations call.

import type { Erasures } from '../../erasure/erasures.ts'
import type { Promote } from '../../intake/promote.ts'
import type { Claims } from '../../processing/claims.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { EventReader } from '../../store/contract/events.ts'
import type { InboxReader } from '../../store/contract/inbox.ts'
import type { ListReader } from '../../store/contract/lists.ts'
import type { ResumePointOf } from './cursor-ahead.ts'

export interface InboxOptions {
  readonly inbox: Pick<InboxReader, 'conversation'>
  readonly events: EventReader
  readonly claims: Pick<Claims, 'states' | 'counts' | 'subscriptions'>
  readonly clock: Clock
  readonly lists: ListReader
  /** Waits, for a limited time, until the index covers every event stored before the call; resolves with the remaining lag. */
  readonly awaitIndex: (needed?: 'entries' | 'words') => Promise<number>
  readonly promote: Promote
  readonly resumePointOf: ResumePointOf
  readonly erasures: Erasures
  /** Resolves once the refusals that wait in memory are written: an erasure may name them. */
  readonly refusalsSettled: () => Promise<void>
  /** Starts the purge of what was erased. */
  readonly onErased: () => void
}
