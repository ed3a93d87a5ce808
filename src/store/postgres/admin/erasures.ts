// Erases rows of the journal on PostgreSQL, cleans the index of what it holds of them, and reads the erasure log. VACUUM and the
// expiry of WAL archives remove the old row versions (docs/operating/erase.md).

import { createIdentity, createMintedDigest } from '../../../model/dedupe.ts'
import {
  createConversationKeys,
  createErasedDigest,
  ERASED_CHANNEL,
  ERASED_CONTENT_TYPE,
  erasureLogId,
  type ErasureRecord,
} from '../../../model/erasure.ts'
import type { IdGap } from '../../../model/id-gaps.ts'
import type { ErasureStore } from '../../contract/erasures.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { erasureRecord } from '../../rows.ts'
import { bigints, byteas, texts, unnested } from '../connection/binary-array.ts'
import { LOCKS } from '../connection/locks.ts'
import type { Pool } from '../connection/pool.ts'
import { retryTransaction } from '../connection/retry-transaction.ts'
import type { Identity } from '../schema.ts'
import { cleanErased, readErasurePosition } from '../index/index-erasures.ts'

const SELECT_ROWS = `SELECT ${EVENT_COLUMNS} FROM intray.events
  WHERE id = ANY ($1::bigint[]) AND company_id = $2 AND account_id = $3 AND erased_at IS NULL ORDER BY id FOR UPDATE`
/** In the order in which an append locks them. */
const LOCK_KEYS = `SELECT 1 FROM intray.dedupe WHERE company_id = $1 AND digest = ANY ($2::bytea[])
  ORDER BY company_id, digest FOR NO KEY UPDATE`
const ERASE_KEYS = `UPDATE intray.dedupe d SET sha256 = k.bytes
  FROM (SELECT unnest($2::bigint[]) AS event_id, unnest($3::bytea[]) AS digest, unnest($4::bytea[]) AS bytes) k
  WHERE d.company_id = $1 AND d.digest = k.digest AND d.event_id = k.event_id`
const ERASE_ROWS = `UPDATE intray.events e SET erased_at = $2, sha256 = k.bytes, channel_ref = k.channel,
    content_type = '${ERASED_CONTENT_TYPE}', source_ref = NULL, idempotency_key = NULL, traceparent = NULL,
    user_agent = NULL, remote_addr = NULL, payload = NULL
  FROM (SELECT unnest($3::bigint[]) AS id, unnest($4::bytea[]) AS bytes, unnest($5::text[]) AS channel) k
  WHERE e.id = k.id AND e.company_id = $1`
const ERASE_HISTORY = `UPDATE intray.delivery_history SET error = NULL
  WHERE event_id = ANY ($1::bigint[]) AND company_id = $2 AND account_id = $3 AND error IS NOT NULL`
const INSERT = `INSERT INTO intray.erasures (id, company_id, account_id, event_id, erased_at, digest, bytes)
  SELECT (SELECT coalesce(max(id), 0) FROM intray.erasures) + row_number() OVER (), $1, $2, k.*
  FROM (SELECT unnest($4::bigint[]), $3::bigint, unnest($5::bytea[]), unnest($6::bytea[])) k`
const DELETE_REFUSALS =
  'DELETE FROM intray.refusals WHERE company_id = $1 AND account_id = $2 AND id = ANY ($3::bigint[])'
const SELECT_MINTED = 'SELECT event_id FROM intray.dedupe WHERE company_id = $1 AND digest = ANY ($2::bytea[])'
const COLUMNS = 'id, company_id, account_id, event_id, erased_at, digest, bytes'
const SELECT_LOG = `SELECT ${COLUMNS} FROM intray.erasures WHERE id > $1 ORDER BY id LIMIT $2`
const SELECT_LAST_OF = `SELECT coalesce(max(id), 0) AS id FROM intray.erasures WHERE company_id = $1 AND account_id = $2`
const SELECT_UNERASED = `SELECT e.id FROM (SELECT ${unnested('bigint bigint bigint bytea')}) AS k (id, company_id, account_id, bytes)
  JOIN intray.events e ON e.id = k.id AND e.company_id = k.company_id AND e.account_id = k.account_id
  WHERE e.erased_at IS NULL AND intray.erased_digest(e.sha256) = k.bytes`

/** Erasures that one step cleans from the index. */
const CLEAN_ROWS = 200

/** `epochs`: gaps of restores, as they were when the store was opened. */
export function createErasureStore(
  pool: Pool,
  { databaseUuid, dedupeKey }: Identity,
  epochs: readonly IdGap[],
): ErasureStore {
  const identityOf = createIdentity(dedupeKey)
  const mintedDigest = createMintedDigest()
  const erasedDigest = createErasedDigest(dedupeKey)
  const conversationKeys = createConversationKeys(dedupeKey)
  const logId = erasureLogId(databaseUuid, dedupeKey, epochs)

  /** What replaces the content of a row. */
  const remainsOf = (cells: EventCells) => {
    const event = storedEvent(cells)
    const hasReference = event.sourceRef !== null || event.idempotencyKey !== null
    const channel = conversationKeys.ofRow(event)
    return {
      id: event.id,
      digest: hasReference ? Buffer.from(identityOf(event, NO_KEY)) : null,
      bytes: erasedDigest(event.sha256),
      channel: channel === null ? null : ERASED_CHANNEL + channel,
    }
  }

  return {
    erase: ({ companyId, accountId }, ids, at) =>
      retryTransaction(pool, async (connection) => {
        // One erasure at a time, so that the ids of the log are in commit order.
        await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.erasures)
        const rows = await connection.rows<EventCells>(SELECT_ROWS, [bigints(ids), companyId, accountId])
        if (rows.length === 0) return 0
        const remains = rows.map(remainsOf)
        const eventIds = bigints(remains.map(({ id }) => id))
        const digests = byteas(remains.map(({ digest }) => digest))
        const bytes = byteas(remains.map((one) => one.bytes))
        await connection.query(LOCK_KEYS, [companyId, digests])
        await connection.query(ERASE_KEYS, [companyId, eventIds, digests, bytes])
        const channels = texts(remains.map(({ channel }) => channel))
        await connection.query(ERASE_ROWS, [companyId, at, eventIds, bytes, channels])
        await connection.query(ERASE_HISTORY, [eventIds, companyId, accountId])
        await connection.query(INSERT, [companyId, accountId, at, eventIds, digests, bytes])
        return rows.length
      }),
    deleteRefusals: ({ companyId, accountId }, ids) =>
      pool.use(async (connection) => {
        await connection.query(DELETE_REFUSALS, [companyId, accountId, bigints(ids)])
      }),
    findMinted: async ({ companyId }, keys) => {
      const digests = byteas(keys.map((key) => Buffer.from(mintedDigest(key))))
      const rows = await pool.use((connection) =>
        connection.query<{ event_id: number }>(SELECT_MINTED, [companyId, digests]),
      )
      return rows.map((row) => row.event_id)
    },
    purge: () => pool.use(async (connection) => ({ more: await cleanErased(connection, CLEAN_ROWS), waits: false })),
    isPending: ({ companyId, accountId }) =>
      pool.use(async (connection) => {
        const [last] = await connection.query<{ id: number }>(SELECT_LAST_OF, [companyId, accountId])
        return last!.id > (await readErasurePosition(connection))
      }),
    logId: async () => logId,
    log: async (afterId, limit) =>
      (await pool.use((connection) => connection.query(SELECT_LOG, [afterId, limit]))).map(erasureRecord),
    unerased: async (records: readonly ErasureRecord[]) => {
      const values = [
        bigints(records.map(({ eventId }) => eventId)),
        bigints(records.map(({ companyId }) => companyId)),
        bigints(records.map(({ accountId }) => accountId)),
        byteas(records.map(({ bytes }) => bytes)),
      ]
      const rows = await pool.use((connection) => connection.query<{ id: number }>(SELECT_UNERASED, values))
      return rows.map(({ id }) => id)
    },
  }
}

const NO_KEY = new Uint8Array()
