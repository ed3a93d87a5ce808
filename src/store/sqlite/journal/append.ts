// Append on SQLite: one transaction for all waiting batches, on the connection that writes the journal. The insert of
// the dedupe key decides; the event is inserted after it in the same transaction.
//
//   dedupe key      new → event                                   → stored
//               existed → same minted key                         → stored (our own retry)
//                         bytes of the first (or their HMAC, if it was erased) → resend row → duplicate; none if it was purged
//                         bytes of a kept revision                → resend row → conflict
//                         other bytes                             → revision   → conflict; an event if the first was purged

import type { DatabaseSync } from 'node:sqlite'
import { createIdentity, createMintedDigest, createSha256 } from '../../../model/dedupe.ts'
import { createErasedDigest } from '../../../model/erasure.ts'
import type { EventKind } from '../../../model/event.ts'
import { MOVED } from '../../copy-state.ts'
import type { AppendOutcome } from '../../contract/append.ts'
import { META_COLUMNS } from '../../event-columns.ts'
import { inTransaction, storeFailure } from '../connection.ts'
import { readMeta } from '../schema.ts'
import { type AppendBatch, type AppendRow, unpackBatch } from './append-batch.ts'
import { prepareSequence } from './sequence.ts'

const INSERT_KEY = `INSERT INTO dedupe (company_id, digest, event_id, sha256, minted_key) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO NOTHING`
const SELECT_KEY = 'SELECT event_id, sha256, minted_key FROM dedupe WHERE company_id = ? AND digest = ?'
const INSERT_EVENT = `INSERT INTO events (id, kind, revises, ${META_COLUMNS.map(({ name }) => name).join(', ')}, size, sha256, payload)
  VALUES (?, ?, ?, ${META_COLUMNS.map(() => '?').join(', ')}, ?, ?, ?)`
const SELECT_REVISION = 'SELECT 1 FROM events WHERE revises = ? AND sha256 IN (?, ?)'
const SELECT_FIRST = 'SELECT 1 FROM events WHERE id = ?'
const INSERT_RESEND =
  'INSERT INTO resends (id, company_id, event_id, received_at, key_id, request_id) VALUES (?, ?, ?, ?, ?, ?)'

/** A minted key alone recognises a node's own retry: without a reference, no bytes are compared. */
const NO_BYTES = Buffer.alloc(0)

/** An outcome on its way to the main thread. A stored message, the usual case, is its id alone: the least to send. */
export type Written = number | Exclude<AppendOutcome, { outcome: 'stored' }>

export function outcomeOf(written: Written): AppendOutcome {
  return typeof written === 'number' ? { outcome: 'stored', id: written } : written
}

/** Several batches in one commit; returns the outcomes of each. */
export type AppendAll = (batches: readonly AppendBatch[]) => Written[][]

export function prepareAppend(db: DatabaseSync): AppendAll {
  const eventIds = prepareSequence(db, 'events')
  const resendIds = prepareSequence(db, 'resends')
  const insertKey = db.prepare(INSERT_KEY)
  const selectKey = db.prepare(SELECT_KEY)
  const insertEvent = db.prepare(INSERT_EVENT)
  const selectRevision = db.prepare(SELECT_REVISION)
  const selectFirst = db.prepare(SELECT_FIRST)
  const insertResend = db.prepare(INSERT_RESEND)
  const identityOf = createIdentity(readMeta(db, 'dedupe_key'))
  const mintedDigest = createMintedDigest()
  const sha256Of = createSha256()
  const erasedDigest = createErasedDigest(readMeta(db, 'dedupe_key'))

  function append(row: AppendRow): Written {
    const { meta } = row
    const minted = mintedDigest(row.mintedKey)
    const digest = identityOf(meta, minted)
    const sha256 = sha256Of(row.payload)
    const id = eventIds.peek()
    const { changes } = insertKey.run(meta.companyId, digest, id, digest === minted ? NO_BYTES : sha256, minted)
    if (changes === 0) return appendAgain(row, digest, sha256, minted)
    insertRow(row, sha256, 'event', null)
    return id
  }

  function appendAgain(row: AppendRow, digest: Uint8Array, sha256: Uint8Array, minted: Uint8Array): Written {
    const { companyId, receivedAt, keyId, requestId } = row.meta
    const first = selectKey.get(companyId, digest)!
    const id = first.event_id as number
    if (Buffer.compare(minted, first.minted_key as Uint8Array) === 0) return id
    const known = first.sha256 as Uint8Array
    // Of an erased or purged message there are HMACs to compare with.
    const erased = erasedDigest(sha256)
    const isSame = Buffer.compare(sha256, known) === 0
    const isGone = !isSame && !selectFirst.get(id)
    const sameBytes = isSame || Buffer.compare(erased, known) === 0
    // A purged message has no row that this re-send could be counted for.
    if (sameBytes && isGone) return { outcome: 'duplicate', id }
    if (sameBytes || selectRevision.get(id, sha256, erased)) {
      insertResend.run(resendIds.take(), companyId, id, receivedAt, keyId, requestId)
    } else {
      insertRow(row, sha256, isGone ? 'event' : 'revision', id)
    }
    return { outcome: sameBytes ? 'duplicate' : 'conflict', id }
  }

  function insertRow(
    { values, payload }: AppendRow,
    sha256: Uint8Array,
    kind: EventKind,
    revises: number | null,
  ): void {
    insertEvent.run(eventIds.take(), kind, revises, ...values, payload.byteLength, sha256, payload)
  }

  /** For a batch with a bad row: runs each row in its own savepoint, so that the bad one fails alone. */
  function appendAlone(row: AppendRow): Written {
    const nextIds = [eventIds.peek(), resendIds.peek()] as const
    db.exec('SAVEPOINT one_row')
    try {
      const written = append(row)
      db.exec('RELEASE one_row')
      return written
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      db.exec('ROLLBACK TO one_row; RELEASE one_row')
      eventIds.rewind(nextIds[0])
      resendIds.rewind(nextIds[1])
      const reason = error instanceof Error ? error.message : String(error)
      return { outcome: 'failed', reason, ...(reason === MOVED && { isMoved: true }) }
    }
  }

  function commit(batches: readonly AppendBatch[], appendRow: (row: AppendRow) => Written): Written[][] {
    return inTransaction(db, () => {
      eventIds.load()
      resendIds.load()
      const written = batches.map((batch) => unpackBatch(batch).map(appendRow))
      eventIds.save()
      resendIds.save()
      return written
    })
  }

  return (batches) => {
    try {
      return commit(batches, append)
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      return commit(batches, appendAlone)
    }
  }
}
