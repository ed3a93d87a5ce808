// Erases rows of the journal on SQLite, and reads the erasure log.

import type { DatabaseSync } from 'node:sqlite'
import { createIdentity, createMintedDigest } from '../../../model/dedupe.ts'
import {
  createConversationKeys,
  createErasedDigest,
  ERASED_CHANNEL,
  ERASED_CONTENT_TYPE,
  type ErasureRecord,
} from '../../../model/erasure.ts'
import type { Tenant } from '../../../model/principal.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { erasureRecord } from '../../rows.ts'
import { inTransaction } from '../connection.ts'
import { readMeta } from '../schema.ts'

const SELECT_ROW = `SELECT ${EVENT_COLUMNS} FROM events
  WHERE id = ? AND company_id = ? AND account_id = ? AND erased_at IS NULL`
const ERASE_ROW = `UPDATE events SET erased_at = ?, sha256 = ?, channel_ref = ?, content_type = '${ERASED_CONTENT_TYPE}',
  source_ref = NULL, idempotency_key = NULL, traceparent = NULL, user_agent = NULL, remote_addr = NULL, payload = NULL
  WHERE id = ?`
const ERASE_KEY = 'UPDATE dedupe SET sha256 = ? WHERE company_id = ? AND digest = ? AND event_id = ?'
const ERASE_HISTORY =
  'UPDATE delivery_history SET error = NULL WHERE event_id = ? AND company_id = ? AND account_id = ?'
const INSERT = `INSERT INTO erasures (company_id, account_id, event_id, erased_at, digest, bytes) VALUES (?, ?, ?, ?, ?, ?)`
const DELETE_REFUSAL = 'DELETE FROM refusals WHERE company_id = ? AND account_id = ? AND id = ?'
const SELECT_MINTED = 'SELECT event_id FROM dedupe WHERE company_id = ? AND digest = ?'
const COLUMNS = 'id, company_id, account_id, event_id, erased_at, digest, bytes'
const SELECT_LOG = `SELECT ${COLUMNS} FROM erasures WHERE id > ? ORDER BY id LIMIT ? + 0`
const SELECT_SHA256 = `SELECT sha256 FROM events WHERE id = ? AND company_id = ? AND account_id = ? AND erased_at IS NULL`
const SELECT_POSITIONS = `SELECT position AS cleaned, (SELECT purged FROM index_origin) AS purged FROM index_cursors
  WHERE source = 'erasures'`
const SELECT_LAST_OF = 'SELECT max(id) AS id FROM erasures WHERE company_id = ? AND account_id = ?'

export function prepareErasureWrites(db: DatabaseSync) {
  const dedupeKey = readMeta(db, 'dedupe_key')
  const identityOf = createIdentity(dedupeKey)
  const erasedDigest = createErasedDigest(dedupeKey)
  const conversationKeys = createConversationKeys(dedupeKey)

  function eraseRow(cells: EventCells, at: number): void {
    const event = storedEvent(cells)
    const { id, companyId, accountId } = event
    const hasReference = event.sourceRef !== null || event.idempotencyKey !== null
    const digest = hasReference ? identityOf(event, NO_KEY) : null
    const bytes = erasedDigest(event.sha256)
    const channel = conversationKeys.ofRow(event)
    db.prepare(ERASE_ROW).run(at, bytes, channel === null ? null : ERASED_CHANNEL + channel, id)
    if (digest) db.prepare(ERASE_KEY).run(bytes, companyId, digest, id)
    db.prepare(ERASE_HISTORY).run(id, companyId, accountId)
    db.prepare(INSERT).run(companyId, accountId, id, at, digest, bytes)
  }

  return {
    erase: ({ companyId, accountId }: Tenant, ids: readonly number[], at: number): number =>
      inTransaction(db, () => {
        const select = db.prepare(SELECT_ROW)
        select.setReturnArrays(true)
        let erased = 0
        for (const id of ids) {
          const cells = select.get(id, companyId, accountId) as unknown as EventCells | undefined
          if (!cells) continue
          eraseRow(cells, at)
          erased += 1
        }
        return erased
      }),
    deleteRefusals: ({ companyId, accountId }: Tenant, ids: readonly number[]): void =>
      inTransaction(db, () => {
        const remove = db.prepare(DELETE_REFUSAL)
        for (const id of ids) remove.run(companyId, accountId, id)
      }),
  }
}

const NO_KEY = new Uint8Array()

export function prepareErasureReads(db: DatabaseSync, dedupeKey: Uint8Array) {
  const mintedDigest = createMintedDigest()
  const erasedDigest = createErasedDigest(dedupeKey)
  return {
    findMinted({ companyId }: Tenant, keys: readonly string[]): number[] {
      const select = db.prepare(SELECT_MINTED)
      return keys.flatMap((key) => (select.get(companyId, mintedDigest(key))?.event_id as number | undefined) ?? [])
    },
    log: (afterId: number, limit: number): ErasureRecord[] =>
      db.prepare(SELECT_LOG).all(afterId, limit).map(erasureRecord),
    unerased(records: readonly ErasureRecord[]): number[] {
      const select = db.prepare(SELECT_SHA256)
      const isNamed = ({ eventId, companyId, accountId, bytes }: ErasureRecord) => {
        const row = select.get(eventId, companyId, accountId)
        return row !== undefined && erasedDigest(row.sha256 as Uint8Array).equals(bytes)
      }
      return records.filter(isNamed).map(({ eventId }) => eventId)
    },
  }
}

export function readPending(db: DatabaseSync, { companyId, accountId }: Tenant): boolean {
  const last = db.prepare(SELECT_LAST_OF).get(companyId, accountId)?.id as number | null
  return last !== null && last > erasurePositions(db).purged
}

/** How far the erasure log is carried out: in the index (`cleaned`), and in the files (`purged`). */
export function erasurePositions(db: DatabaseSync): { readonly cleaned: number; readonly purged: number } {
  const row = db.prepare(SELECT_POSITIONS).get()
  return { cleaned: Number(row?.cleaned ?? 0), purged: Number(row?.purged ?? 0) }
}

/** The last id of the erasure log. */
export function lastErasure(db: DatabaseSync): number {
  return Number(db.prepare('SELECT max(id) AS id FROM erasures').get()?.id ?? 0)
}
