// Puts messages into their places in the journal: a row in `events`, and one in `dedupe` for each first arrival.

import type { DatabaseSync } from 'node:sqlite'
import { createMintedDigest } from '../../model/dedupe.ts'
import type { AppendRow } from './append-batch.ts'

const INSERT_DEDUPE = `INSERT INTO dedupe (company_id, digest, event_id, sha256, minted_key) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO NOTHING`
const INSERT_EVENT = `INSERT INTO events (id, kind, revises, account_id, company_id, received_at, key_id, scope, route,
    source_ref, channel_ref, idempotency_key, content_type, size, sha256, origin, request_id, traceparent, user_agent,
    remote_addr, payload)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

/** False if the key is taken. */
export type InsertKey = (
  id: number,
  companyId: number,
  digest: Uint8Array,
  sha256: Uint8Array,
  mintedKey: Uint8Array,
) => boolean

export function prepareInsertKey(db: DatabaseSync): InsertKey {
  const insert = db.prepare(INSERT_DEDUPE)
  return (id, companyId, digest, sha256, mintedKey) =>
    insert.run(companyId, digest, id, sha256, mintedKey).changes === 1
}

export interface JournalRows {
  /** False if the key is taken. */
  insertKey(id: number, row: AppendRow): boolean
  insertEvent(id: number, row: AppendRow, revises: number | null): void
}

export function prepareJournalRows(db: DatabaseSync): JournalRows {
  const insertKey = prepareInsertKey(db)
  const insertEvent = db.prepare(INSERT_EVENT)
  const mintedDigest = createMintedDigest()
  return {
    insertKey(id, row) {
      return insertKey(id, row.companyId, row.digest, row.sha256, mintedDigest(row.mintedKey))
    },
    insertEvent(id, row, revises) {
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
    },
  }
}
