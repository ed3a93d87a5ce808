// Append on SQLite: one transaction for all batches that are waiting, in the writer thread.
//
//   dedupe row   new → event                                      → stored
//            existed → same minted key                            → stored (our own retry)
//                      bytes of the first                         → resend row → duplicate
//                      bytes of a kept revision                   → resend row → conflict
//                      other bytes                                → revision   → conflict

import type { DatabaseSync } from 'node:sqlite'
import type { AppendOutcome } from '../contract/append.ts'
import { type AppendBatch, type AppendRow, unpackBatch } from './append-batch.ts'
import { inTransaction, storeFailure } from './connection.ts'
import { prepareSequence } from './sequence.ts'

const INSERT_DEDUPE = `INSERT INTO dedupe (company_id, digest, event_id, sha256, minted_key) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO NOTHING`
const SELECT_DEDUPE = 'SELECT event_id, sha256, minted_key FROM dedupe WHERE company_id = ? AND digest = ?'
const SELECT_REVISION = "SELECT 1 FROM events WHERE revises = ? AND sha256 = ? AND kind = 'revision'"
const INSERT_RESEND =
  'INSERT INTO resends (id, company_id, event_id, received_at, key_id, request_id) VALUES (?, ?, ?, ?, ?, ?)'
const INSERT_EVENT = `INSERT INTO events (id, kind, revises, account_id, company_id, received_at, key_id, scope, route,
    source_ref, channel_ref, idempotency_key, content_type, size, sha256, origin, request_id, traceparent, user_agent,
    remote_addr, payload)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** Several batches in one commit; the outcomes of each are its own. */
export type AppendAll = (batches: readonly AppendBatch[]) => AppendOutcome[][]

export function prepareAppend(db: DatabaseSync): AppendAll {
  const eventIds = prepareSequence(db, 'events')
  const resendIds = prepareSequence(db, 'resends')
  const insertDedupe = db.prepare(INSERT_DEDUPE)
  const selectDedupe = db.prepare(SELECT_DEDUPE)
  selectDedupe.setReturnArrays(true)
  const selectRevision = db.prepare(SELECT_REVISION)
  const insertResend = db.prepare(INSERT_RESEND)
  const insertEvent = db.prepare(INSERT_EVENT)

  function insert(id: number, row: AppendRow, revises: number | null): void {
    insertEvent.run(
      id,
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
      row.sha256,
      row.origin,
      row.requestId,
      row.traceparent,
      row.userAgent,
      row.remoteAddr,
      row.payload,
    )
  }

  function appendRow(row: AppendRow): AppendOutcome {
    const id = eventIds.peek()
    if (insertDedupe.run(row.companyId, row.digest, id, row.sha256, row.mintedKey).changes === 1) {
      insert(eventIds.take(), row, null)
      return { outcome: 'stored', id }
    }
    return appendAgain(row)
  }

  function appendAgain(row: AppendRow): AppendOutcome {
    const first = selectDedupe.get(row.companyId, row.digest) as unknown as [number, Uint8Array, Uint8Array]
    const [id, firstSha256, firstMinted] = first
    if (row.mintedKey && Buffer.compare(row.mintedKey, firstMinted) === 0) return { outcome: 'stored', id }
    const sameBytes = Buffer.compare(row.sha256, firstSha256) === 0
    if (sameBytes || selectRevision.get(id, row.sha256)) {
      insertResend.run(resendIds.take(), row.companyId, id, row.receivedAt, row.keyId, row.requestId)
    } else {
      insert(eventIds.take(), row, id)
    }
    return { outcome: sameBytes ? 'duplicate' : 'conflict', id }
  }

  /** For a batch with a bad row: each row in a savepoint of its own, so that it fails alone. */
  function appendAlone(row: AppendRow): AppendOutcome {
    const nextIds = [eventIds.peek(), resendIds.peek()] as const
    db.exec('SAVEPOINT one_row')
    try {
      const outcome = appendRow(row)
      db.exec('RELEASE one_row')
      return outcome
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      db.exec('ROLLBACK TO one_row; RELEASE one_row')
      eventIds.rewind(nextIds[0])
      resendIds.rewind(nextIds[1])
      return { outcome: 'failed', reason: error instanceof Error ? error.message : String(error) }
    }
  }

  function commit(batches: readonly AppendBatch[], append: (row: AppendRow) => AppendOutcome): AppendOutcome[][] {
    return inTransaction(db, () => {
      eventIds.load()
      resendIds.load()
      const outcomes = batches.map((batch) => {
        const own: AppendOutcome[] = []
        for (const row of unpackBatch(batch)) own.push(append(row))
        return own
      })
      eventIds.save()
      resendIds.save()
      return outcomes
    })
  }

  return (batches) => {
    try {
      return commit(batches, appendRow)
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      return commit(batches, appendAlone)
    }
  }
}
