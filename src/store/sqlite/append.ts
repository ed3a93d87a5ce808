// Append on SQLite: one transaction for a batch, in the writer thread.
//
//   dedupe row?  no  → event + dedupe row                         → stored
//                yes → same minted key                            → stored (our own retry)
//                      bytes of the first                         → resend row → duplicate
//                      bytes of a kept revision                   → resend row → conflict
//                      other bytes                                → revision   → conflict

import { hash } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { dedupeDigest, mintedDigest } from '../../model/dedupe.ts'
import type { AppendOutcome } from '../contract/append.ts'
import { type AppendBatch, type AppendRow, unpackBatch } from './append-batch.ts'
import { inTransaction, storeFailure } from './connection.ts'
import { readMeta } from './schema.ts'

const SELECT_DEDUPE = 'SELECT event_id, sha256, minted_key FROM dedupe WHERE company_id = ? AND digest = ?'
const INSERT_DEDUPE = 'INSERT INTO dedupe (company_id, digest, event_id, sha256, minted_key) VALUES (?, ?, ?, ?, ?)'
const SELECT_REVISION = "SELECT 1 FROM events WHERE revises = ? AND sha256 = ? AND kind = 'revision'"
const INSERT_RESEND =
  'INSERT INTO resends (company_id, event_id, received_at, key_id, request_id) VALUES (?, ?, ?, ?, ?)'
const INSERT_EVENT = `INSERT INTO events (kind, revises, account_id, company_id, received_at, key_id, scope, route,
    source_ref, channel_ref, idempotency_key, content_type, size, sha256, origin, request_id, traceparent, user_agent,
    remote_addr, payload)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

export type Append = (batch: AppendBatch) => AppendOutcome[]

export function prepareAppend(db: DatabaseSync): Append {
  const hmacKey = readMeta(db, 'dedupe_key')
  const selectDedupe = db.prepare(SELECT_DEDUPE)
  selectDedupe.setReturnArrays(true)
  const insertDedupe = db.prepare(INSERT_DEDUPE)
  const selectRevision = db.prepare(SELECT_REVISION)
  const insertResend = db.prepare(INSERT_RESEND)
  const insertEvent = db.prepare(INSERT_EVENT)

  function insert(row: AppendRow, revises: number | null, sha256: Uint8Array): number {
    const { lastInsertRowid } = insertEvent.run(
      revises === null ? 'event' : 'revision',
      revises,
      row.accountId,
      row.companyId,
      row.receivedAt,
      row.keyId,
      row.scope,
      row.route,
      row.sourceRef,
      row.channelRef,
      row.idempotencyKey,
      row.contentType,
      row.payload.byteLength,
      sha256,
      row.origin,
      row.requestId,
      row.traceparent,
      row.userAgent,
      row.remoteAddr,
      row.payload,
    )
    return Number(lastInsertRowid)
  }

  function appendRow(row: AppendRow): AppendOutcome {
    const minted = mintedDigest(row.mintedKey)
    const digest = identity(hmacKey, row) ?? minted
    const sha256 = hash('sha256', row.payload, 'buffer')
    const first = selectDedupe.get(row.companyId, digest) as unknown as [number, Uint8Array, Uint8Array] | undefined
    if (!first) {
      const id = insert(row, null, sha256)
      insertDedupe.run(row.companyId, digest, id, sha256, minted)
      return { outcome: 'stored', id }
    }
    const [id, firstSha256, firstMinted] = first
    if (minted.equals(firstMinted)) return { outcome: 'stored', id }
    const sameBytes = sha256.equals(firstSha256)
    if (sameBytes || selectRevision.get(id, sha256)) {
      insertResend.run(row.companyId, id, row.receivedAt, row.keyId, row.requestId)
    } else {
      insert(row, id, sha256)
    }
    return { outcome: sameBytes ? 'duplicate' : 'conflict', id }
  }

  /** For a batch with a bad row: each row in a savepoint of its own, so that it fails alone. */
  function appendAlone(row: AppendRow): AppendOutcome {
    db.exec('SAVEPOINT one_row')
    try {
      const outcome = appendRow(row)
      db.exec('RELEASE one_row')
      return outcome
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      db.exec('ROLLBACK TO one_row; RELEASE one_row')
      return { outcome: 'failed', reason: error instanceof Error ? error.message : String(error) }
    }
  }

  return (batch) => {
    try {
      return inTransaction(db, () => Array.from(unpackBatch(batch), appendRow))
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      return inTransaction(db, () => Array.from(unpackBatch(batch), appendAlone))
    }
  }
}

/** What makes this message one message; null if the sender gave nothing to go by. */
function identity(hmacKey: Uint8Array, row: AppendRow): Uint8Array | null {
  if (row.sourceRef !== null) return dedupeDigest(hmacKey, row, 'ref', row.sourceRef)
  if (row.idempotencyKey !== null) return dedupeDigest(hmacKey, row, 'key', row.idempotencyKey)
  return null
}
