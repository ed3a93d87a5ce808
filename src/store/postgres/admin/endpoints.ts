// Endpoints on PostgreSQL. Changes run one after the other, under a lock: a generation is the highest plus one, so that no node can
// read past a generation that commits later.

import type { Endpoint } from '../../../model/endpoint.ts'
import { DEFAULT_SUBSCRIPTION } from '../../../model/processing.ts'
import type { EndpointStore } from '../../contract/endpoints.ts'
import type { QueueName } from '../../contract/processing.ts'
import { ENDPOINT_COLUMNS, endpoint, settingsValues, storedAttempts, withAttempts } from '../../endpoint-rows.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Pool } from '../connection/pool.ts'
import { queueOf } from '../processing/processing.ts'
import { ADD_DEFAULT } from '../processing/subscriptions.ts'
import { lockEndpoints, NEXT_GENERATION, removeEndpoint } from './endpoint-removal.ts'

const OF_QUEUE = 'company_id = $1 AND account_id = $2 AND subscription = $3'
const FROM = `FROM intray.endpoints e JOIN intray.subscriptions s
  ON s.company_id = e.company_id AND s.account_id = e.account_id AND s.id = e.subscription`
const HERE = 'e.removed_at IS NULL AND s.deleted_at IS NULL'
const SELECT: Statement = {
  name: 'intray_endpoint',
  text: `SELECT ${ENDPOINT_COLUMNS} ${FROM} WHERE e.company_id = $1 AND e.account_id = $2 AND s.name = $3 AND ${HERE}`,
}
const SELECT_OF_TENANT = `SELECT ${ENDPOINT_COLUMNS} ${FROM} WHERE e.company_id = $1 AND e.account_id = $2 AND ${HERE}
  ORDER BY e.subscription`
const SELECT_ALL = `SELECT ${ENDPOINT_COLUMNS} ${FROM} WHERE ${HERE} ORDER BY e.company_id, e.account_id, e.subscription`
const SELECT_CHANGED: Statement = {
  name: 'intray_changed_endpoints',
  text: `SELECT ${ENDPOINT_COLUMNS} ${FROM} WHERE e.generation > $1 ORDER BY e.generation LIMIT $2`,
}
const SELECT_GENERATION: Statement = {
  name: 'intray_endpoint_generation',
  text: 'SELECT coalesce(max(generation), 0) AS generation FROM intray.endpoints',
}
const HAS_SEALED = 'SELECT 1 FROM intray.endpoints WHERE removed_at IS NULL LIMIT 1'
/** A removed row is replaced, in one revision after its last. */
const PUT = `INSERT INTO intray.endpoints AS e (company_id, account_id, subscription, id, is_active, body, timeout_ms, concurrency,
    sealed, disabled_reason, created_at, changed_at, is_moved, trips, revision, generation)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, 0, 0, 1, ${NEXT_GENERATION})
  ON CONFLICT (company_id, account_id, subscription) DO UPDATE SET id = excluded.id, is_active = excluded.is_active,
    body = excluded.body, timeout_ms = excluded.timeout_ms, concurrency = excluded.concurrency, sealed = excluded.sealed,
    disabled_reason = excluded.disabled_reason, changed_at = excluded.changed_at,
    created_at = CASE WHEN e.removed_at IS NULL THEN e.created_at ELSE excluded.created_at END, removed_at = NULL,
    opened_at = NULL, retry_at = NULL, trips = 0, revision = e.revision + 1, generation = ${NEXT_GENERATION}`
const SET_CIRCUIT = `UPDATE intray.endpoints SET opened_at = $5, retry_at = $6, trips = $7, generation = ${NEXT_GENERATION}
  WHERE ${OF_QUEUE} AND revision = $4 AND removed_at IS NULL`
const SELECT_ATTEMPTS: Statement = {
  name: 'intray_endpoint_attempts',
  text: `SELECT attempts FROM intray.endpoint_attempts WHERE ${OF_QUEUE}`,
}
const LOCK_ATTEMPTS = `SELECT attempts FROM intray.endpoint_attempts WHERE ${OF_QUEUE} FOR UPDATE`
const PUT_ATTEMPTS = `INSERT INTO intray.endpoint_attempts (company_id, account_id, subscription, attempts)
  VALUES ($1, $2, $3, $4) ON CONFLICT (company_id, account_id, subscription) DO UPDATE SET attempts = excluded.attempts`

export function createEndpointStore(pool: Pool): EndpointStore {
  const change = <T>(work: (connection: Connection) => Promise<T>): Promise<T> =>
    pool.transaction(async (connection) => {
      await lockEndpoints(connection)
      return work(connection)
    })
  return {
    list: async (tenant) => {
      const rows = await pool.use((connection) =>
        tenant === null
          ? connection.query(SELECT_ALL)
          : connection.query(SELECT_OF_TENANT, [tenant.companyId, tenant.accountId]),
      )
      return rows.map(endpoint)
    },
    find: (name) => pool.use((connection) => find(connection, name)),
    put: (name, settings, revision, at) =>
      change(async (connection) => {
        const { companyId, accountId } = name.tenant
        if (name.subscription === DEFAULT_SUBSCRIPTION) await connection.query(ADD_DEFAULT, [companyId, accountId, at])
        const queue = await queueOf(connection, name)
        if (queue === null) return null
        if (((await find(connection, name))?.revision ?? 0) !== revision) return 'changed'
        await connection.query(PUT, [...queue, ...settingsValues(settings), at])
        return find(connection, name)
      }),
    setCircuit: (name, revision, { openedAt, retryAt, trips }) =>
      change(async (connection) => {
        const queue = await queueOf(connection, name)
        if (queue) await connection.query(SET_CIRCUIT, [...queue, revision, openedAt, retryAt, trips])
      }),
    remove: (name, at) =>
      change(async (connection) => {
        const queue = await queueOf(connection, name)
        return queue !== null && removeEndpoint(connection, queue, at)
      }),
    generation: async () => {
      const [row] = await pool.lookUp((connection) => connection.query<{ generation: number }>(SELECT_GENERATION))
      return row!.generation
    },
    changedSince: async (generation, limit) =>
      (await pool.lookUp((connection) => connection.query(SELECT_CHANGED, [generation, limit]))).map(endpoint),
    hasSealed: async () => (await pool.lookUp((connection) => connection.query(HAS_SEALED))).length > 0,
    addAttempts: (name, attempts, keep) =>
      pool.transaction(async (connection) => {
        const queue = await queueOf(connection, name)
        if (!queue) return
        const [row] = await connection.query<{ attempts: string }>(LOCK_ATTEMPTS, queue)
        await connection.query(PUT_ATTEMPTS, [...queue, withAttempts(row?.attempts, attempts, keep)])
      }),
    attempts: (name, limit) =>
      pool.use(async (connection) => {
        const queue = await queueOf(connection, name)
        const [row] = queue === null ? [] : await connection.query<{ attempts: string }>(SELECT_ATTEMPTS, queue)
        return storedAttempts(row?.attempts).slice(0, limit)
      }),
  }
}

async function find(connection: Connection, { tenant, subscription }: QueueName): Promise<Endpoint | null> {
  const [row] = await connection.query(SELECT, [tenant.companyId, tenant.accountId, subscription])
  return row ? endpoint(row) : null
}
