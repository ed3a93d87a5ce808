// The rows of the journal that a step of the indexer reads: usually the next ones in one statement.
//
// Where a damaged page lets that fail, each row alone, by its id: whole, without its payload, or not at all. This is done outside
// of a transaction, since SQLite commits none that met a damaged page.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type IdGap, inGap } from '../../../model/id-gaps.ts'
import type { ConversationKeys } from '../../../model/erasure.ts'
import {
  type Derived,
  derive,
  isWhole,
  type JournalRow,
  type ResendRow,
  type StepLimits,
  unreadable,
} from '../../../model/index-step.ts'
import { createRecipeOf, readingOf } from '../../../model/payload-reading.ts'
import { StoreFailure } from '../../contract/failure.ts'
import { prepareDefinitionOf } from '../admin/hooks.ts'
import { isDamage } from '../connection.ts'
import { readSequence } from '../journal/sequence.ts'

const COLUMNS = `id, kind, revises, account_id, company_id, received_at, channel_ref, size, sha256, key_id, scope,
  request_id, erased_at, content_type, recipe`
const SELECT_EVENTS = `SELECT ${COLUMNS}, payload FROM events WHERE id > ? AND id <= ? ORDER BY id LIMIT ? + 0`
const SELECT_EVENT = `SELECT ${COLUMNS}, payload FROM events WHERE id = ?`
const SELECT_WITHOUT_PAYLOAD = `SELECT ${COLUMNS}, NULL FROM events WHERE id = ?`
/** The account is in the event's row. */
const SELECT_RESENDS = `SELECT r.id, r.company_id AS companyId, r.event_id AS eventId, r.received_at AS receivedAt,
    r.key_id AS keyId, e.account_id AS accountId
  FROM resends AS r LEFT JOIN events AS e ON e.id = r.event_id WHERE r.id > ? ORDER BY r.id LIMIT ? + 0`
const SELECT_RESEND = `SELECT id, company_id AS companyId, event_id AS eventId, received_at AS receivedAt, key_id AS keyId,
  NULL AS accountId FROM resends WHERE id = ?`
const SELECT_ACCOUNT = 'SELECT account_id FROM events WHERE id = ?'

/** Ids that one step looks for one by one. */
const MAX_LOOKS = 500

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

export function prepareJournalRows(db: DatabaseSync, conversationKeys: ConversationKeys, gaps: readonly IdGap[]) {
  const arrays = (sql: string): StatementSync => {
    const statement = db.prepare(sql)
    statement.setReturnArrays(true)
    return statement
  }
  const selectEvents = arrays(SELECT_EVENTS)
  const selectEvent = arrays(SELECT_EVENT)
  const selectWithoutPayload = arrays(SELECT_WITHOUT_PAYLOAD)
  const selectResends = db.prepare(SELECT_RESENDS)
  const recipeOf = createRecipeOf(prepareDefinitionOf(db))

  const rowOf = (cells: unknown): JournalRow => journalRow(cells as readonly unknown[], conversationKeys)
  const derivedOf = (row: JournalRow, { extractBytes }: StepLimits): Derived =>
    derive(row, readingOf(row, recipeOf, extractBytes))

  /** Null if there is no such row. */
  function readOne(id: number, limits: StepLimits): Derived | 'lost' | null {
    const whole = orDamage(() => selectEvent.get(id))
    if (whole === undefined) return null
    const cells = whole === DAMAGE ? orDamage(() => selectWithoutPayload.get(id)) : whole
    if (cells === DAMAGE || cells === undefined) return 'lost'
    const row = orDamage(() => rowOf(cells))
    if (row === DAMAGE || row.id !== id) return 'lost'
    return whole === DAMAGE ? unreadable(row) : derivedOf(row, limits)
  }

  return {
    /** Bounded by count and bytes; at least one if there is one. */
    next(after: number, upTo: number, limits: StepLimits): Derived[] {
      const derived: Derived[] = []
      let bytes = 0
      for (const found of selectEvents.iterate(after, upTo, limits.maxRows)) {
        const row = rowOf(found)
        derived.push(derivedOf(row, limits))
        bytes += row.size
        if (bytes >= limits.maxBytes) break
      }
      return derived
    },

    oneByOne(after: number, upTo: number, limits: StepLimits): RowsAround {
      const derived: Derived[] = []
      const lost: number[] = []
      let [position, bytes] = [after, 0]
      for (let looks = 0; position < upTo && looks < MAX_LOOKS && bytes < limits.maxBytes; looks++) {
        position = Math.min(upTo, inGap(gaps, position + 1)?.before ?? position + 1)
        const found = readOne(position, limits)
        if (found === 'lost') lost.push(position)
        else if (found !== null) {
          derived.push(found)
          bytes += found.row.size
        }
      }
      return { after, derived, lost, position }
    },

    nextResends: (after: number, limits: StepLimits): ResendRow[] =>
      selectResends.all(after, limits.maxRows) as unknown as ResendRow[],

    /** A re-send that cannot be read is not counted. */
    resendsOneByOne(after: number): ResendsAround {
      const select = db.prepare(SELECT_RESEND)
      const selectAccount = db.prepare(SELECT_ACCOUNT)
      const resends: ResendRow[] = []
      const position = Math.min(readSequence(db, 'resends'), after + MAX_LOOKS)
      for (let id = after + 1; id <= position; id++) {
        const row = orDamage(() => select.get(id) as unknown as ResendRow | undefined)
        if (row === DAMAGE || row === undefined) continue
        const account = orDamage(() => selectAccount.get(row.eventId))
        resends.push({
          ...row,
          accountId: account === DAMAGE ? null : ((account?.account_id ?? null) as number | null),
        })
      }
      return { after, resends, position }
    },
  }
}

const DAMAGE = Symbol('damage')

function orDamage<T>(read: () => T): T | typeof DAMAGE {
  try {
    return read()
  } catch (error) {
    if (!isDamage(error)) throw error
    return DAMAGE
  }
}

/** Maps a row that was read as an array: half the cost of an object. */
function journalRow(cells: readonly unknown[], conversationKeys: ConversationKeys): JournalRow {
  const row = {
    id: cells[0] as number,
    kind: cells[1] as JournalRow['kind'],
    revises: cells[2] as number | null,
    accountId: cells[3] as number,
    companyId: cells[4] as number,
    receivedAt: cells[5] as number,
    channelRef: cells[6] as string | null,
    size: cells[7] as number,
    sha256: cells[8] as Uint8Array,
    keyId: cells[9] as string,
    scope: cells[10] as string,
    requestId: cells[11] as string,
    erasedAt: cells[12] as number | null,
    contentType: cells[13] as string,
    recipe: cells[14] as string | null,
    payload: cells[15] as Uint8Array | null,
  }
  // A page with other content than it was written with.
  if (!isWhole(row)) throw new StoreFailure('damaged', 'a row of the journal makes no sense')
  return { ...row, channelKey: conversationKeys.ofRow(row) }
}
