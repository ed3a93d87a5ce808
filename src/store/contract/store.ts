// A store: one database behind one contract. Drivers differ in traits, never in behaviour.

import type { Appender } from './append.ts'
import type { Diagnosis } from './diagnosis.ts'
import type { EndpointStore } from './endpoints.ts'
import type { ErasureStore } from './erasures.ts'
import type { EventReader } from './events.ts'
import type { Follower } from './follow.ts'
import type { HookStore } from './hooks.ts'
import type { InboxReader } from './inbox.ts'
import type { IndexStore } from './indexing.ts'
import type { ListReader } from './lists.ts'
import type { MetricsReader } from './metrics.ts'
import type { NodeStore } from './nodes.ts'
import type { OperatorStore } from './operators.ts'
import type { ProcessingStore } from './processing.ts'
import type { RecoveryStore } from './recovery.ts'
import type { RefusalStore } from './refusals.ts'
import type { RetentionStore } from './retention.ts'
import type { TokenStore } from './tokens.ts'
import type { TrafficReader } from './traffic.ts'
import type { TransferStore } from './transfer.ts'

export interface StoreTraits {
  /** Several servers may use the database at once. */
  readonly concurrentWriters: boolean
  /** How many concurrent appends are worthwhile. */
  readonly appendsInFlight: number
}

export interface Store {
  readonly traits: StoreTraits
  /** Facts for the operator: driver, location, versions, durability as read back. Contains no secret. */
  readonly facts: Readonly<Record<string, string | number>>
  readonly journal: Appender
  readonly events: EventReader
  readonly inbox: InboxReader
  readonly lists: ListReader
  readonly follow: Follower
  readonly index: IndexStore
  readonly processing: ProcessingStore
  readonly endpoints: EndpointStore
  readonly tokens: TokenStore
  readonly hooks: HookStore
  readonly refusals: RefusalStore
  readonly erasures: ErasureStore
  readonly retention: RetentionStore
  readonly nodes: NodeStore
  readonly operators: OperatorStore
  readonly traffic: TrafficReader
  readonly metrics: MetricsReader
  readonly diagnosis: Diagnosis
  readonly recovery: RecoveryStore
  readonly transfer: TransferStore
  /** Makes a small durable write; resolves if the store accepts writes now. */
  probe(): Promise<void>
  /** Calls the listener once if the storage can no longer be trusted. The process must then exit. */
  onFatal(listener: (failure: Error) => void): void
  /** Calls the listener with a sentence after calls met damaged pages, now and then. The store goes on. */
  onDamage(listener: (finding: string) => void): void
  /** Finishes operations in progress and closes. */
  close(): Promise<void>
}

export interface StoreOptions {
  /** `server`: the serving process. `tool`: a command, beside a server or alone. */
  readonly role: 'server' | 'tool'
  /** Throws DatabaseMissing instead of creating a database. */
  readonly mustExist?: boolean
}
