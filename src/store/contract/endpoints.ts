// Stored endpoints of subscriptions, and how their changes reach every node: each change draws the next generation, and a node
// polls for endpoints that changed since the generation it knows.
//
// Promises
// - A subscription has at most one endpoint. An endpoint whose subscription is deleted is gone with it.
// - Settings and target change together, and only from the revision that the caller has seen: a request that was under way to an
//   earlier URL disables nothing.
// - An endpoint of a tenant that is being moved is gone in the source before its rows are copied, and back in the target with the
//   tenant.

import type { Circuit, Endpoint, EndpointSettings, PushAttempt } from '../../model/endpoint.ts'
import type { Tenant } from '../../model/principal.ts'
import type { QueueName } from './processing.ts'

export interface EndpointStore {
  /** Of a tenant, or of all (null), in the order of tenants and subscriptions; those that are gone are left out. */
  list(tenant: Tenant | null): Promise<Endpoint[]>
  find(queue: QueueName): Promise<Endpoint | null>
  /**
   * `revision`: the one that the settings are made from; 0 for a new endpoint. Closes the circuit. Null: no such subscription;
   * `changed`: it has another revision.
   */
  put(queue: QueueName, settings: EndpointSettings, revision: number, at: number): Promise<Endpoint | 'changed' | null>
  /** Does nothing if the endpoint has another revision. */
  setCircuit(queue: QueueName, revision: number, circuit: Circuit): Promise<void>
  /** False if there is none. */
  remove(queue: QueueName, at: number): Promise<boolean>

  generation(): Promise<number>
  /** Also those that are gone, at most `limit`, in the order of generations. */
  changedSince(generation: number, limit: number): Promise<Endpoint[]>
  /** Whether any endpoint has a sealed target. */
  hasSealed(): Promise<boolean>

  /** Keeps the newest `keep` attempts. */
  addAttempts(queue: QueueName, attempts: readonly PushAttempt[], keep: number): Promise<void>
  /** Newest first. */
  attempts(queue: QueueName, limit: number): Promise<PushAttempt[]>
}
