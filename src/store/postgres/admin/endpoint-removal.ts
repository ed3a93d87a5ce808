// Ends of endpoints on PostgreSQL: removed, gone with a subscription, or moved with a tenant. Inside a transaction of the caller, which
// holds the lock of endpoints.

import type { Tenant } from '../../../model/principal.ts'
import type { Connection } from '../connection/connection.ts'
import { LOCKS } from '../connection/locks.ts'

export const NEXT_GENERATION = '(SELECT coalesce(max(generation), 0) + 1 FROM intray.endpoints)'
const OF_QUEUE = 'company_id = $1 AND account_id = $2 AND subscription = $3'
const REMOVE = `UPDATE intray.endpoints SET removed_at = $4, sealed = '', generation = ${NEXT_GENERATION}
  WHERE ${OF_QUEUE} AND removed_at IS NULL RETURNING id`
const REMOVE_ATTEMPTS = `DELETE FROM intray.endpoint_attempts WHERE ${OF_QUEUE}`
const SET_MOVED = `UPDATE intray.endpoints SET is_moved = $3, generation = ${NEXT_GENERATION}
  WHERE company_id = $1 AND account_id = $2`

export type QueueKey = readonly [companyId: number, accountId: number, subscription: number]

export async function lockEndpoints(connection: Connection): Promise<void> {
  await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.endpoints)
}

export async function removeEndpoint(connection: Connection, queue: QueueKey, at: number): Promise<boolean> {
  await connection.query(REMOVE_ATTEMPTS, queue)
  return (await connection.query(REMOVE, [...queue, at])).length > 0
}

export async function setEndpointsMoved(
  connection: Connection,
  { companyId, accountId }: Tenant,
  isMoved: boolean,
): Promise<void> {
  await connection.query(SET_MOVED, [companyId, accountId, isMoved ? 1 : 0])
}
