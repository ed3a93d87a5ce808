// Reads of exports and imports on PostgreSQL.

import { createIdentity, createMintedDigest } from '../../../model/dedupe.ts'
import { createErasedDigest } from '../../../model/erasure.ts'
import type { Held, ImportedItem, TransferStore } from '../../contract/transfer.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { heldAs } from '../../held-items.ts'
import { bigints, byteas, unnested } from '../connection/binary-array.ts'
import type { Pool } from '../connection/pool.ts'

const SELECT_ROWS = `SELECT ${EVENT_COLUMNS} FROM intray.events WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3`
const SELECT_ROWS_OF = `SELECT ${EVENT_COLUMNS} FROM intray.events WHERE company_id = $4 AND account_id = $5 AND id = ANY (ARRAY(
    SELECT event_id FROM intray.event_index
    WHERE event_id > $1 AND event_id <= $2 AND company_id = $4 AND account_id = $5 ORDER BY event_id LIMIT $3))
  ORDER BY id`
const SELECT_PAYLOADS = 'SELECT id, payload FROM intray.events WHERE id = ANY ($1::bigint[]) AND payload IS NOT NULL'
const SELECT_KEYS = `SELECT k.n, d.event_id, d.sha256 AS key_sha256, e.sha256, e.received_at, e.erased_at,
    EXISTS (SELECT FROM intray.events r WHERE r.revises = d.event_id AND r.company_id = d.company_id
      AND r.sha256 = k.sha256) AS is_revision,
    EXISTS (SELECT FROM intray.events r WHERE r.revises = d.event_id AND r.company_id = d.company_id
      AND r.sha256 = k.erased) AS is_erased_revision
  FROM (SELECT ${unnested('bigint bigint bytea bytea bytea')}) AS k (n, company_id, digest, sha256, erased)
  JOIN intray.dedupe d ON d.company_id = k.company_id AND d.digest = k.digest
  LEFT JOIN intray.events e ON e.id = d.event_id AND e.company_id = d.company_id`

interface KeyRow extends Record<string, unknown> {
  readonly n: number
  readonly event_id: number
  readonly key_sha256: Uint8Array
  readonly sha256: Uint8Array | null
  readonly received_at: number
  readonly erased_at: number | null
  readonly is_revision: boolean
  readonly is_erased_revision: boolean
}

export function createTransferStore(pool: Pool, dedupeKey: Uint8Array): TransferStore {
  const identityOf = createIdentity(dedupeKey)
  const mintedDigest = createMintedDigest()
  const erasedDigest = createErasedDigest(dedupeKey)

  return {
    async rows({ tenant, afterId, throughId, limit }) {
      const range = [afterId, throughId, limit]
      const found = await pool.use((connection) =>
        tenant === null
          ? connection.rows<EventCells>(SELECT_ROWS, range)
          : connection.rows<EventCells>(SELECT_ROWS_OF, [...range, tenant.companyId, tenant.accountId]),
      )
      return found.map(storedEvent)
    },
    async payloads(ids) {
      const rows = await pool.use((connection) =>
        connection.query<{ id: number; payload: Uint8Array }>(SELECT_PAYLOADS, [bigints(ids)]),
      )
      return new Map(rows.map(({ id, payload }) => [id, payload]))
    },
    async held(items: readonly ImportedItem[]) {
      const erased = items.map(({ sha256 }) => erasedDigest(sha256))
      const digests = items.map((item) => Buffer.from(identityOf(item, mintedDigest(item.mintedKey))))
      const values = [
        bigints(items.map((_, n) => n)),
        bigints(items.map(({ companyId }) => companyId)),
        byteas(digests),
        byteas(items.map(({ sha256 }) => sha256)),
        byteas(erased),
      ]
      const rows = await pool.use((connection) => connection.query<KeyRow>(SELECT_KEYS, values))
      const found: (Held | null)[] = items.map(() => null)
      for (const { n, event_id: eventId, key_sha256: keySha256, sha256, ...row } of rows) {
        found[n] = heldAs(items[n]!, erased[n]!, {
          eventId,
          keySha256,
          event: sha256 && { sha256, receivedAt: row.received_at, erasedAt: row.erased_at },
          isRevision: row.is_revision,
          isErasedRevision: row.is_erased_revision,
        })
      }
      return found
    },
  }
}
