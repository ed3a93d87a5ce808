// Reads of exports and imports on SQLite.

import type { DatabaseSync } from 'node:sqlite'
import { createIdentity, createMintedDigest } from '../../../model/dedupe.ts'
import { createErasedDigest } from '../../../model/erasure.ts'
import type { StoredEvent } from '../../../model/event.ts'
import type { Held, ImportedItem, RowQuery } from '../../contract/transfer.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { heldAs, type StoredKey } from '../../held-items.ts'

const SELECT_ROWS = `SELECT ${EVENT_COLUMNS} FROM events WHERE id > ? AND id <= ? ORDER BY id LIMIT ? + 0`
const SELECT_ROWS_OF = `SELECT ${EVENT_COLUMNS} FROM events WHERE id IN (
    SELECT event_id FROM event_index WHERE event_id > ? AND event_id <= ? AND company_id = ? AND account_id = ?
    ORDER BY event_id LIMIT ? + 0)
  ORDER BY id`
const SELECT_PAYLOAD = 'SELECT payload FROM events WHERE id = ?'
const SELECT_KEY = `SELECT d.event_id, d.sha256 AS key_sha256, e.sha256, e.received_at, e.erased_at
  FROM dedupe d LEFT JOIN events e ON e.id = d.event_id WHERE d.company_id = ? AND d.digest = ?`
const SELECT_REVISION = 'SELECT 1 FROM events WHERE revises = ? AND sha256 = ?'

export function prepareTransferReads(db: DatabaseSync, dedupeKey: Uint8Array) {
  const identityOf = createIdentity(dedupeKey)
  const mintedDigest = createMintedDigest()
  const erasedDigest = createErasedDigest(dedupeKey)

  function held(items: readonly ImportedItem[]): (Held | null)[] {
    const selectKey = db.prepare(SELECT_KEY)
    const selectRevision = db.prepare(SELECT_REVISION)
    return items.map((item) => {
      const row = selectKey.get(item.companyId, identityOf(item, mintedDigest(item.mintedKey)))
      if (!row) return null
      const eventId = row.event_id as number
      const erased = erasedDigest(item.sha256)
      return heldAs(item, erased, {
        eventId,
        keySha256: row.key_sha256 as Uint8Array,
        event: storedIn(row),
        isRevision: selectRevision.get(eventId, item.sha256) !== undefined,
        isErasedRevision: selectRevision.get(eventId, erased) !== undefined,
      })
    })
  }

  return {
    rows({ tenant, afterId, throughId, limit }: RowQuery): StoredEvent[] {
      const select = db.prepare(tenant === null ? SELECT_ROWS : SELECT_ROWS_OF)
      select.setReturnArrays(true)
      const of = tenant === null ? [] : [tenant.companyId, tenant.accountId]
      return (select.all(afterId, throughId, ...of, limit) as unknown as EventCells[]).map(storedEvent)
    },
    payloads(ids: readonly number[]): ReadonlyMap<number, Uint8Array> {
      const select = db.prepare(SELECT_PAYLOAD)
      const found = new Map<number, Uint8Array>()
      for (const id of ids) {
        const payload = select.get(id)?.payload
        if (payload instanceof Uint8Array) found.set(id, payload)
      }
      return found
    },
    held,
  }
}

/** The columns of `events` that SELECT_KEY joins. */
function storedIn({
  sha256,
  received_at: receivedAt,
  erased_at: erasedAt,
}: Record<string, unknown>): StoredKey['event'] {
  if (sha256 === null) return null
  return { sha256: sha256 as Uint8Array, receivedAt: receivedAt as number, erasedAt: erasedAt as number | null }
}
