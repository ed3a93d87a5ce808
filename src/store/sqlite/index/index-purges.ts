// Removes from the index file what retention has deleted from the journal, following the table `purges`.

import type { DatabaseSync } from 'node:sqlite'
import { ERASED_CHANNEL } from '../../../model/erasure.ts'
import { inTransaction } from '../connection.ts'
import { changeWords } from './words.ts'

const SELECT_POSITION = 'SELECT followed FROM index_origin'
const SELECT = 'SELECT id, company_id, account_id, event_id FROM purges WHERE id > ? ORDER BY id LIMIT ? + 0'
const MOVE_POSITION = 'UPDATE index_origin SET followed = ?'
const DELETE_ENTRY = `DELETE FROM event_index WHERE company_id = ? AND account_id = ? AND event_id = ?
  RETURNING conversation_id, erased`
const DELETE_REPEATS = 'DELETE FROM repeats WHERE company_id = ? AND event_id = ?'
const SELECT_KEY = 'SELECT channel_key FROM conversation_ids WHERE company_id = ? AND account_id = ? AND id = ?'
const ENTRIES = `FROM event_index INDEXED BY events_by_conversation
  WHERE company_id = ?1 AND account_id = ?2 AND conversation_id = ?3 ORDER BY event_id`
/** The first and the last of its events that are left. */
const UPDATE_CONVERSATION = `UPDATE conversations SET
    event_count = event_count - ?5, erased_count = erased_count - ?6,
    channel_ref = CASE WHEN erased_count - ?6 = event_count - ?5 THEN '${ERASED_CHANNEL}' || channel_key ELSE channel_ref END,
    (first_received_at, first_contact_name, first_contact_email) =
      (SELECT received_at, contact_name, contact_email ${ENTRIES} LIMIT 1),
    (last_event_id, last_received_at, last_contact_name, last_contact_email, last_snippet) =
      (SELECT event_id, received_at, contact_name, contact_email, snippet ${ENTRIES} DESC LIMIT 1)
  WHERE company_id = ?1 AND account_id = ?2 AND channel_key = ?4 AND event_count > ?5`
const DELETE_CONVERSATION = 'DELETE FROM conversations WHERE company_id = ? AND account_id = ? AND channel_key = ?'

interface PurgedRow {
  readonly id: number
  readonly company_id: number
  readonly account_id: number
  readonly event_id: number
}

interface Loss {
  readonly row: PurgedRow
  readonly conversationId: number
  events: number
  erased: number
}

/** How far the index has followed. */
export function purgePosition(db: DatabaseSync): number {
  return Number(db.prepare(SELECT_POSITION).get()?.followed ?? 0)
}

export function hasPurges(db: DatabaseSync): boolean {
  return db.prepare(SELECT).get(purgePosition(db), 1) !== undefined
}

export function prepareIndexPurges(db: DatabaseSync) {
  function follow(maxRows: number): boolean {
    const rows = db.prepare(SELECT).all(purgePosition(db), maxRows) as unknown as PurgedRow[]
    const last = rows.at(-1)
    if (!last) return false
    const losses = new Map<string, Loss>()
    for (const row of rows) {
      const entry = db.prepare(DELETE_ENTRY).get(row.company_id, row.account_id, row.event_id)
      db.prepare(DELETE_REPEATS).run(row.company_id, row.event_id)
      changeWords(db, `DELETE FROM event_words WHERE rowid = ${Number(row.event_id)}`)
      const conversationId = (entry?.conversation_id ?? null) as number | null
      if (conversationId === null) continue
      const name = `${row.company_id}:${row.account_id}:${conversationId}`
      const loss = losses.get(name) ?? { row, conversationId, events: 0, erased: 0 }
      losses.set(name, loss)
      loss.events += 1
      loss.erased += entry!.erased as number
    }
    for (const loss of losses.values()) shrink(loss)
    db.prepare(MOVE_POSITION).run(last.id)
    return true
  }

  function shrink({ row, conversationId, events, erased }: Loss): void {
    const tenant = [row.company_id, row.account_id] as const
    const key = db.prepare(SELECT_KEY).get(...tenant, conversationId)?.channel_key as string | undefined
    if (key === undefined) return
    const { changes } = db.prepare(UPDATE_CONVERSATION).run(...tenant, conversationId, key, events, erased)
    if (changes === 0) db.prepare(DELETE_CONVERSATION).run(...tenant, key)
  }

  return {
    /** One bounded step; false: nothing was left. */
    follow: (maxRows: number): boolean => inTransaction(db, () => follow(maxRows)),
  }
}
