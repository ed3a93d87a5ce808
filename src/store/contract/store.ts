// A store: one database behind one set of promises. Drivers differ in traits, never in behaviour.

import type { Appender } from './append.ts'
import type { Diagnosis } from './diagnosis.ts'
import type { EventReader } from './events.ts'
import type { FigureReader } from './figures.ts'
import type { Follower } from './follow.ts'
import type { InboxReader } from './inbox.ts'
import type { IndexStore } from './indexing.ts'
import type { NodeStore } from './nodes.ts'
import type { OperatorStore } from './operators.ts'
import type { ProcessingStore } from './processing.ts'
import type { RefusalStore } from './refusals.ts'
import type { TokenStore } from './tokens.ts'
import type { TrafficReader } from './traffic.ts'

export interface StoreTraits {
  /** Several servers may use the database at once. */
  readonly concurrentWriters: boolean
  /** How many appends are worth having under way at once. */
  readonly appendsInFlight: number
}

export interface Store {
  readonly traits: StoreTraits
  /** Facts for the operator: driver, place, versions, durability as read back. Holds no secret. */
  readonly facts: Readonly<Record<string, string | number>>
  readonly journal: Appender
  readonly events: EventReader
  readonly inbox: InboxReader
  readonly follow: Follower
  readonly index: IndexStore
  readonly processing: ProcessingStore
  readonly tokens: TokenStore
  readonly refusals: RefusalStore
  readonly nodes: NodeStore
  readonly operators: OperatorStore
  readonly traffic: TrafficReader
  readonly figures: FigureReader
  readonly diagnosis: Diagnosis
  /** Does a small durable write: resolves if the store takes writes now. */
  probe(): Promise<void>
  /** Called once if the storage can no longer be trusted. The process has to end. */
  onFatal(listener: (failure: Error) => void): void
  /** Finishes what was begun and closes. */
  close(): Promise<void>
}

export interface StoreOptions {
  /** `server`: the one that serves. `tool`: a command beside it, or without it. */
  readonly role: 'server' | 'tool'
}
