// The endpoints of a SQLite store: a few rows, which are read on the main thread and changed by the writer.

import type { DatabaseSync } from 'node:sqlite'
import { tenantText } from '../../../model/principal.ts'
import type { EndpointStore } from '../../contract/endpoints.ts'
import type { QueueName } from '../../contract/processing.ts'
import { guard } from '../guarded-calls.ts'
import type { Executor, Operations } from '../operations.ts'
import { prepareEndpointReads } from './endpoints.ts'

export function createEndpointStore(main: DatabaseSync, writer: Executor<Operations>): EndpointStore {
  const reads = prepareEndpointReads(main)
  const turnOf = ({ tenant }: QueueName) => ({ holder: tenantText(tenant) })
  return {
    list: (tenant) => guard(() => reads.list(tenant)),
    find: (queue) => guard(() => reads.find(queue)),
    put: (queue, ...change) => writer.run('putEndpoint', [queue, ...change], turnOf(queue)),
    setCircuit: (queue, ...change) => writer.run('setCircuit', [queue, ...change], turnOf(queue)),
    remove: (queue, at) => writer.run('removeEndpoint', [queue, at], turnOf(queue)),
    generation: () => guard(() => reads.generation()),
    changedSince: (generation, limit) => guard(() => reads.changedSince(generation, limit)),
    hasSealed: () => guard(() => reads.hasSealed()),
    addAttempts: (queue, ...added) => writer.run('addAttempts', [queue, ...added], turnOf(queue)),
    attempts: (queue, limit) => guard(() => reads.attempts(queue, limit)),
  }
}
