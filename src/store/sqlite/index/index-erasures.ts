// Removes from the index file what it holds of erased rows, following the erasure log; and merges the search words, whose
// segments keep those of deleted rows.

import type { DatabaseSync } from 'node:sqlite'
import { ERASED_CHANNEL } from '../../../model/erasure.ts'
import { erasurePositions } from '../admin/erasures.ts'
import { inTransaction } from '../connection.ts'
import { changeWords } from './words.ts'
import { hasPurges } from './index-purges.ts'

const SELECT = `SELECT x.id, x.company_id, x.account_id, x.event_id, e.channel_ref
  FROM erasures x LEFT JOIN events e ON e.id = x.event_id WHERE x.id > ? ORDER BY x.id LIMIT ? + 0`
const CLEAN_ENTRY = `UPDATE event_index SET erased = 1, contact_name = NULL, contact_email = NULL, email_key = NULL,
    message_type = NULL, snippet = NULL, warnings = NULL, unindexed = NULL
  WHERE company_id = ? AND account_id = ? AND event_id = ? AND erased = 0 RETURNING conversation_id`
const CLEAN_CONVERSATION = `UPDATE conversations SET
    erased_count = erased_count + 1,
    channel_ref = CASE WHEN erased_count + 1 = event_count THEN '${ERASED_CHANNEL}' || channel_key ELSE channel_ref END,
    first_contact_name = CASE WHEN id = ?1 THEN NULL ELSE first_contact_name END,
    first_contact_email = CASE WHEN id = ?1 THEN NULL ELSE first_contact_email END,
    last_contact_name = CASE WHEN last_event_id = ?1 THEN NULL ELSE last_contact_name END,
    last_contact_email = CASE WHEN last_event_id = ?1 THEN NULL ELSE last_contact_email END,
    last_snippet = CASE WHEN last_event_id = ?1 THEN NULL ELSE last_snippet END
  WHERE company_id = ?2 AND account_id = ?3 AND channel_key = ?4`
const MOVE_CURSOR = "UPDATE index_cursors SET position = ? WHERE source = 'erasures'"
const NOTE_PURGED = 'UPDATE index_origin SET purged = ?'
const SELECT_CHANGES = 'SELECT total_changes() AS count'
/** Pages that one step of a merge writes: some 50 ms of work. */
const MERGE_PAGES = 250

interface ErasedRow {
  readonly id: number
  readonly company_id: number
  readonly account_id: number
  readonly event_id: number
  /** Null without one, or if the row was purged. */
  readonly channel_ref: string | null
}

export function prepareIndexErasures(db: DatabaseSync) {
  function cleanRow({ company_id, account_id, event_id, channel_ref }: ErasedRow): void {
    const entry = db.prepare(CLEAN_ENTRY).get(company_id, account_id, event_id)
    changeWords(db, `DELETE FROM event_words WHERE rowid = ${Number(event_id)}`)
    // Not indexed yet, or indexed after the erasure: counted as erased then.
    if (!entry || entry.conversation_id === null || channel_ref === null) return
    const key = channel_ref.slice(ERASED_CHANNEL.length)
    db.prepare(CLEAN_CONVERSATION).run(event_id, company_id, account_id, key)
  }

  const changes = (): number => Number(db.prepare(SELECT_CHANGES).get()?.count)

  return {
    clean: (maxRows: number): void =>
      inTransaction(db, () => {
        // Entries of rows that were purged since are removed first: their conversations are counted by the entries.
        if (hasPurges(db)) return
        const rows = db.prepare(SELECT).all(erasurePositions(db).cleaned, maxRows) as unknown as ErasedRow[]
        for (const row of rows) cleanRow(row)
        const last = rows.at(-1)
        if (last) db.prepare(MOVE_CURSOR).run(last.id)
      }),
    /** One step of a merge into one segment; true once nothing is left to merge. A negative number of pages begins it. */
    mergeWords: (isFirst: boolean): boolean => {
      const before = changes()
      const pages = isFirst ? -MERGE_PAGES : MERGE_PAGES
      changeWords(db, `INSERT INTO event_words (event_words, rank) VALUES ('merge', ${pages})`)
      // The insert of changeWords is one; the merge itself reports one without having done anything.
      return changes() - before < 3
    },
    notePurged: (position: number): void => {
      db.prepare(NOTE_PURGED).run(position)
    },
  }
}
