// The rows of the journal that a step of the indexer reads: usually the next ones in one statement.
//
// Where a damaged page lets that fail, each row alone, by its id: whole, without its payload, or not at all. This is done outside
// of a transaction, which a failed statement would end.

import type { IdGap } from '../../../model/id-gaps.ts'
import { inGap } from '../../../model/id-gaps.ts'
import type { ConversationKeys } from '../../../model/erasure.ts'
import {
  type Derived,
  isWhole,
  type JournalRow,
  type ResendRow,
  type StepLimits,
  unreadable,
} from '../../../model/index-step.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { unlessDamaged } from '../connection/failure.ts'
import { customRecipesOf } from './custom-recipes.ts'
import { deriveInTurns } from './turns.ts'

const COLUMNS = `id, kind, revises, account_id AS "accountId", company_id AS "companyId", received_at AS "receivedAt",
    channel_ref AS "channelRef", size, sha256, key_id AS "keyId", scope, request_id AS "requestId",
    erased_at AS "erasedAt", content_type AS "contentType", recipe`
/** The next rows, bounded by count and bytes; at least one if there is one. */
const SELECT_EVENTS: Statement = {
  name: 'intray_next_events',
  text: `SELECT ${COLUMNS}, payload
  FROM intray.events WHERE id > $1 AND id <= (
    SELECT max(id) FROM (
      SELECT id, sum(size::bigint) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - size AS bytes_before FROM (
        SELECT id, size FROM intray.events WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) sizes) page
    WHERE bytes_before < $4)
  ORDER BY id`,
}
const SELECT_RESENDS: Statement = {
  name: 'intray_next_resends',
  // The account is in the event's row.
  text: `SELECT r.id, r.company_id AS "companyId", r.event_id AS "eventId", r.received_at AS "receivedAt",
    r.key_id AS "keyId", e.account_id AS "accountId" FROM (
      SELECT id, company_id, event_id, received_at, key_id FROM intray.resends
      WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) r
    LEFT JOIN intray.events e ON e.id = r.event_id AND e.company_id = r.company_id
  ORDER BY r.id`,
}
const SELECT_EVENT = `SELECT ${COLUMNS}, payload FROM intray.events WHERE id = $1`
const SELECT_WITHOUT_PAYLOAD = `SELECT ${COLUMNS}, NULL::bytea AS payload FROM intray.events WHERE id = $1`
const SELECT_RESEND = `SELECT id, company_id AS "companyId", event_id AS "eventId", received_at AS "receivedAt",
  key_id AS "keyId", NULL::bigint AS "accountId" FROM intray.resends WHERE id = $1`
const SELECT_ACCOUNT = 'SELECT account_id AS "accountId" FROM intray.events WHERE id = $1 AND company_id = $2'

/** Ids that one step looks for one by one. */
const MAX_LOOKS = 200

/** The next rows, read one by one. */
export interface RowsAround {
  readonly after: number
  readonly derived: readonly Derived[]
  /** Ids of which no row can be read. */
  readonly lost: readonly number[]
  /** The last id that was looked for. */
  readonly position: number
}

export interface ResendsAround {
  readonly after: number
  readonly resends: readonly ResendRow[]
  readonly position: number
}

type Found = Omit<JournalRow, 'channelKey'>

export async function readNext(
  connection: Connection,
  keys: ConversationKeys,
  values: readonly number[],
): Promise<JournalRow[]> {
  const rows = await connection.query<Found>(SELECT_EVENTS, values)
  return rows.map((row) => ({ ...row, channelKey: keys.ofRow(row) }))
}

export function readNextResends(connection: Connection, values: readonly number[]): Promise<ResendRow[]> {
  return connection.query<ResendRow>(SELECT_RESENDS, values)
}

export async function readOneByOne(
  connection: Connection,
  keys: ConversationKeys,
  gaps: readonly IdGap[],
  { after, upTo }: { readonly after: number; readonly upTo: number },
  { maxBytes, extractBytes }: StepLimits,
): Promise<RowsAround> {
  const derived: Derived[] = []
  const lost: number[] = []
  let [position, bytes] = [after, 0]
  for (let looks = 0; position < upTo && looks < MAX_LOOKS && bytes < maxBytes; looks++) {
    position = Math.min(upTo, inGap(gaps, position + 1)?.before ?? position + 1)
    const whole = await unlessDamaged(connection.query<Found>(SELECT_EVENT, [position]))
    const rows = whole ?? (await unlessDamaged(connection.query<Found>(SELECT_WITHOUT_PAYLOAD, [position])))
    const found = rows?.[0]
    if (rows === null || (found && !isWhole(found))) lost.push(position)
    if (!found || !isWhole(found)) continue
    const row = { ...found, channelKey: keys.ofRow(found) }
    derived.push(
      ...(whole === null
        ? [unreadable(row)]
        : await deriveInTurns([row], await customRecipesOf(connection, [row]), extractBytes)),
    )
    bytes += row.size
  }
  return { after, derived, lost, position }
}

/** A re-send that cannot be read is not counted. */
export async function readResendsOneByOne(
  connection: Connection,
  { after, upTo }: { readonly after: number; readonly upTo: number },
): Promise<ResendsAround> {
  const resends: ResendRow[] = []
  const position = Math.max(after, Math.min(upTo, after + MAX_LOOKS))
  for (let id = after + 1; id <= position; id++) {
    const row = (await unlessDamaged(connection.query<ResendRow>(SELECT_RESEND, [id])))?.[0]
    if (!row) continue
    const owner = await unlessDamaged(
      connection.query<{ accountId: number }>(SELECT_ACCOUNT, [row.eventId, row.companyId]),
    )
    resends.push({ ...row, accountId: owner?.[0]?.accountId ?? null })
  }
  return { after, resends, position }
}
