// Endpoints on SQLite. Each change takes the highest generation plus one; rows are never deleted, so generations only grow.

import type { DatabaseSync } from 'node:sqlite'
import type { Circuit, Endpoint, EndpointSettings, PushAttempt } from '../../../model/endpoint.ts'
import type { Tenant } from '../../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION } from '../../../model/processing.ts'
import type { QueueName } from '../../contract/processing.ts'
import { ENDPOINT_COLUMNS, endpoint, settingsValues, storedAttempts, withAttempts } from '../../endpoint-rows.ts'
import { inTransaction } from '../connection.ts'
import { queueOf } from '../processing/processing.ts'
import { ADD_DEFAULT } from '../processing/subscriptions.ts'
import { NEXT_GENERATION, type QueueKey, removeEndpoint } from './endpoint-removal.ts'

const OF_QUEUE = 'company_id = ? AND account_id = ? AND subscription = ?'
const FROM = `FROM endpoints e JOIN subscriptions s
  ON s.company_id = e.company_id AND s.account_id = e.account_id AND s.id = e.subscription`
const HERE = 'e.removed_at IS NULL AND s.deleted_at IS NULL'
const SELECT = `SELECT ${ENDPOINT_COLUMNS} ${FROM} WHERE e.company_id = ? AND e.account_id = ? AND s.name = ? AND ${HERE}`
const SELECT_OF_TENANT = `SELECT ${ENDPOINT_COLUMNS} ${FROM} WHERE e.company_id = ? AND e.account_id = ? AND ${HERE}
  ORDER BY e.subscription`
const SELECT_ALL = `SELECT ${ENDPOINT_COLUMNS} ${FROM} WHERE ${HERE} ORDER BY e.company_id, e.account_id, e.subscription`
const SELECT_GENERATION = 'SELECT coalesce(max(generation), 0) AS generation FROM endpoints'
const HAS_SEALED = 'SELECT 1 FROM endpoints WHERE removed_at IS NULL LIMIT 1'
const SELECT_CHANGED = `SELECT ${ENDPOINT_COLUMNS} ${FROM} WHERE e.generation > ? ORDER BY e.generation LIMIT ? + 0`
/** A removed row is replaced, in one revision after its last. */
const PUT = `INSERT INTO endpoints (company_id, account_id, subscription, id, is_active, body, timeout_ms, concurrency, sealed,
    disabled_reason, created_at, changed_at, is_moved, trips, revision, generation)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?11, ?11, 0, 0, 1, ${NEXT_GENERATION})
  ON CONFLICT DO UPDATE SET id = excluded.id, is_active = excluded.is_active, body = excluded.body,
    timeout_ms = excluded.timeout_ms, concurrency = excluded.concurrency, sealed = excluded.sealed,
    disabled_reason = excluded.disabled_reason, changed_at = excluded.changed_at,
    created_at = CASE WHEN removed_at IS NULL THEN created_at ELSE excluded.created_at END, removed_at = NULL,
    opened_at = NULL, retry_at = NULL, trips = 0, revision = revision + 1, generation = ${NEXT_GENERATION}`
const SET_CIRCUIT = `UPDATE endpoints SET opened_at = ?, retry_at = ?, trips = ?, generation = ${NEXT_GENERATION}
  WHERE ${OF_QUEUE} AND revision = ? AND removed_at IS NULL`
const SELECT_ATTEMPTS = `SELECT attempts FROM endpoint_attempts WHERE ${OF_QUEUE}`
const PUT_ATTEMPTS = `INSERT INTO endpoint_attempts (company_id, account_id, subscription, attempts) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET attempts = excluded.attempts`

export function prepareEndpointReads(db: DatabaseSync) {
  return {
    find: ({ tenant, subscription }: QueueName): Endpoint | null => {
      const row = db.prepare(SELECT).get(tenant.companyId, tenant.accountId, subscription)
      return row ? endpoint(row) : null
    },
    list: (tenant: Tenant | null): Endpoint[] => {
      const rows =
        tenant === null
          ? db.prepare(SELECT_ALL).all()
          : db.prepare(SELECT_OF_TENANT).all(tenant.companyId, tenant.accountId)
      return rows.map(endpoint)
    },
    generation: (): number => Number(db.prepare(SELECT_GENERATION).get()?.generation),
    changedSince: (generation: number, limit: number): Endpoint[] =>
      db.prepare(SELECT_CHANGED).all(generation, limit).map(endpoint),
    hasSealed: (): boolean => db.prepare(HAS_SEALED).get() !== undefined,
    attempts: (name: QueueName, limit: number): PushAttempt[] => {
      const queue = queueOf(db, name)
      return queue === null ? [] : storedAttempts(attemptsText(db, queue)).slice(0, limit)
    },
  }
}

export function prepareEndpointWrites(db: DatabaseSync) {
  const { find } = prepareEndpointReads(db)
  return {
    put: (name: QueueName, settings: EndpointSettings, revision: number, at: number): Endpoint | 'changed' | null =>
      inTransaction(db, () => {
        const { companyId, accountId } = name.tenant
        if (name.subscription === DEFAULT_SUBSCRIPTION) db.prepare(ADD_DEFAULT).run(companyId, accountId, at)
        const queue = queueOf(db, name)
        if (queue === null) return null
        if ((find(name)?.revision ?? 0) !== revision) return 'changed'
        db.prepare(PUT).run(...queue, ...settingsValues(settings), at)
        return find(name)
      }),
    setCircuit: (name: QueueName, revision: number, { openedAt, retryAt, trips }: Circuit): void =>
      inTransaction(db, () => {
        const queue = queueOf(db, name)
        if (queue) db.prepare(SET_CIRCUIT).run(openedAt, retryAt, trips, ...queue, revision)
      }),
    remove: (name: QueueName, at: number): boolean =>
      inTransaction(db, () => {
        const queue = queueOf(db, name)
        return queue !== null && removeEndpoint(db, queue, at)
      }),
    addAttempts: (name: QueueName, attempts: readonly PushAttempt[], keep: number): void =>
      inTransaction(db, () => {
        const queue = queueOf(db, name)
        if (queue) db.prepare(PUT_ATTEMPTS).run(...queue, withAttempts(attemptsText(db, queue), attempts, keep))
      }),
  }
}

function attemptsText(db: DatabaseSync, queue: QueueKey): string | undefined {
  return db.prepare(SELECT_ATTEMPTS).get(...queue)?.attempts as string | undefined
}
