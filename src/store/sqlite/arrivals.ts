// Reading what has arrived and is not filed yet.

import type { DatabaseSync } from 'node:sqlite'
import type { StoredEvent } from '../../model/event.ts'
import type { Tenant } from '../../model/principal.ts'
import { StoreFailure } from '../contract/failure.ts'
import { type AppendRow, endOfRows, rowOf } from './append-batch.ts'
import { readSequence } from './sequence.ts'

const SELECT_AROUND = 'SELECT first_id, last_id, batch FROM arrivals WHERE first_id <= ? ORDER BY first_id DESC LIMIT 1'
const SELECT_FIRST = 'SELECT first_id FROM arrivals WHERE first_id > 0 ORDER BY first_id LIMIT 1'
const SELECT_NEXT = 'SELECT first_id, last_id, batch FROM arrivals WHERE first_id > ? ORDER BY first_id LIMIT 1'

/** With a tenant: only if it is that one's. */
export type FindArrival = (id: number, tenant?: Tenant) => AppendRow | null

export function prepareFindArrival(db: DatabaseSync): FindArrival {
  const select = db.prepare(SELECT_AROUND)
  return (id, tenant) => {
    const row = select.get(id)
    if (!row || (row.last_id as number) < id) return null
    const arrival = rowOf(row.batch as Uint8Array, id - (row.first_id as number))
    const isTheirs = !tenant || (arrival.accountId === tenant.accountId && arrival.companyId === tenant.companyId)
    return isTheirs ? arrival : null
  }
}

/** Up to this id nothing is to come. Behind it, what came later may have its row already. */
export function filedThrough(db: DatabaseSync): number {
  const first = db.prepare(SELECT_FIRST).get()
  return first ? (first.first_id as number) - 1 : readSequence(db, 'events')
}

export interface ArrivedBatch {
  readonly firstId: number
  readonly bytes: Uint8Array
}

/**
 * Batches in id order, each read when it is asked for. One that does not hold what its row says is damaged: taken apart anyway,
 * messages would be missing without a word.
 */
export function prepareArrivedBatches(db: DatabaseSync): () => Generator<ArrivedBatch> {
  const select = db.prepare(SELECT_NEXT)
  return function* () {
    for (let row = select.get(0); row; row = select.get(row.first_id as number)) {
      const { first_id: firstId, last_id: lastId, batch: bytes } = row as unknown as Row
      if (endOfRows(bytes, lastId - firstId + 1) !== bytes.byteLength) {
        throw new StoreFailure('rejected', `what arrived as ${firstId} to ${lastId} is damaged`)
      }
      yield { firstId, bytes }
    }
  }
}

export function* arrivedBatches(db: DatabaseSync): Generator<ArrivedBatch> {
  yield* prepareArrivedBatches(db)()
}

interface Row {
  readonly first_id: number
  readonly last_id: number
  readonly batch: Uint8Array
}

/** As it will be read once it is filed. */
export function arrivedEvent(id: number, arrival: AppendRow): StoredEvent {
  const { mintedKey: _key, digest: _digest, payload, sha256, ...meta } = arrival
  const size = payload.byteLength
  return { ...meta, id, kind: 'event', revises: null, size, sha256: Uint8Array.from(sha256), erasedAt: null }
}
