// Writes the index rows of one step on SQLite, row by row, on the connection of the index file.

import type { DatabaseSync } from 'node:sqlite'
import type { RepeatCount } from '../../../model/index-step.ts'
import {
  conversationKey,
  type Derived,
  groupByConversation,
  indexedWords,
  unindexed,
} from '../../../model/index-step.ts'
import type { TrafficTally } from '../../../model/traffic.ts'
import {
  CONVERSATIONS,
  conversationValues,
  ENTRIES,
  entryValues,
  type IndexTable,
  REPEATS,
  repeatValues,
  TRAFFIC,
  trafficValues,
} from '../../index-rows.ts'
import { storeFailure } from '../connection.ts'

/** A conversation that lost events keeps its id. */
const KEPT_ID =
  '(SELECT k.id FROM conversation_ids AS k WHERE k.company_id = ?1 AND k.account_id = ?2 AND k.channel_key = ?3)'
const UPSERT_CONVERSATION = `${insertInto(CONVERSATIONS, (column, place) => (column === 'id' ? `coalesce(${KEPT_ID}, ${place})` : place))}
  ON CONFLICT (company_id, account_id, channel_key) DO UPDATE SET
    channel_ref = CASE WHEN erased_count = event_count THEN excluded.channel_ref ELSE channel_ref END,
    event_count = event_count + excluded.event_count,
    erased_count = erased_count + excluded.erased_count,
    last_event_id = excluded.last_event_id,
    last_received_at = excluded.last_received_at,
    last_contact_name = excluded.last_contact_name,
    last_contact_email = excluded.last_contact_email,
    last_snippet = excluded.last_snippet
  RETURNING id`
const UPSERT_REPEATS = `${insertInto(REPEATS)}
  ON CONFLICT (company_id, event_id) DO UPDATE SET
    resends = resends + excluded.resends,
    revisions = revisions + excluded.revisions,
    last_seen_at = max(last_seen_at, excluded.last_seen_at)`
const UPSERT_TRAFFIC = `${insertInto(TRAFFIC)}
  ON CONFLICT (company_id, account_id, span, at, key_id) DO UPDATE SET
    events = events + excluded.events,
    resends = resends + excluded.resends,
    revisions = revisions + excluded.revisions`
const MARK_ENTRY = 'UPDATE event_index SET unindexed = ? WHERE company_id = ? AND account_id = ? AND event_id = ?'
const INSERT_WORDS = 'INSERT INTO event_words (rowid, words) VALUES (?, ?)'

function insertInto({ name, columns }: IndexTable, cell = (_column: string, place: string) => place): string {
  const names = Object.keys(columns)
  const values = names.map((column, n) => cell(column, `?${n + 1}`))
  return `INSERT INTO ${name} (${names.join(', ')}) VALUES (${values.join(', ')})`
}

export interface IndexWrites {
  /** Writes all rows as they are. */
  writeEvents(derived: readonly Derived[]): readonly Derived[]
  /** Writes each row in its own savepoint; a row that cannot be written is marked, and returned as it was written. */
  writeEachAlone(derived: readonly Derived[]): readonly Derived[]
  /** Writes the words of all rows. Returns how many could not be written: none. */
  writeWords(derived: readonly Derived[], maxWords: number): number
  /** Writes the words of each row in its own savepoint; where that fails, marks the entry. Returns how many failed. */
  writeEachWordsAlone(derived: readonly Derived[], maxWords: number): number
  writeRepeats(counts: readonly RepeatCount[]): void
  writeTraffic(tally: TrafficTally): void
}

export function prepareIndexWrites(db: DatabaseSync): IndexWrites {
  const insertEntry = db.prepare(insertInto(ENTRIES))
  const insertWords = db.prepare(INSERT_WORDS)
  const markEntry = db.prepare(MARK_ENTRY)
  const upsertConversation = db.prepare(UPSERT_CONVERSATION)
  const upsertRepeats = db.prepare(UPSERT_REPEATS)
  const upsertTraffic = db.prepare(UPSERT_TRAFFIC)

  function write(derived: readonly Derived[]): void {
    const conversations = new Map<string, number>()
    for (const [key, group] of groupByConversation(derived)) {
      conversations.set(key, upsertConversation.get(...conversationValues(group))!.id as number)
    }
    for (const one of derived) {
      const key = conversationKey(one.row)
      insertEntry.run(...entryValues(one, key === null ? null : conversations.get(key)!))
    }
  }

  function writeWords(derived: readonly Derived[], maxWords: number): number {
    for (const one of derived) {
      const words = indexedWords(one, maxWords)
      if (words !== null) insertWords.run(one.row.id, words)
    }
    return 0
  }

  /** Runs `work` in a savepoint; returns its error, or null. */
  function inSavepoint(work: () => void): unknown {
    db.exec('SAVEPOINT one_row')
    try {
      work()
      db.exec('RELEASE one_row')
      return null
    } catch (error) {
      if (storeFailure(error).kind !== 'rejected') throw error
      db.exec('ROLLBACK TO one_row; RELEASE one_row')
      return error
    }
  }

  /** Writes the row as it is; else without extracted fields but in its conversation; else as a bare entry. */
  function writeAlone(one: Derived): Derived {
    const failure = inSavepoint(() => write([one]))
    if (failure === null) return one
    const marked = unindexed(one.row, failure)
    if (inSavepoint(() => write([marked])) !== null) insertEntry.run(...entryValues(marked, null))
    return marked
  }

  return {
    writeEvents: (derived) => {
      write(derived)
      return derived
    },
    writeEachAlone: (derived) => derived.map(writeAlone),
    writeWords,
    writeEachWordsAlone: (derived, maxWords) => {
      let failed = 0
      for (const one of derived) {
        const failure = inSavepoint(() => writeWords([one], maxWords))
        if (failure === null) continue
        failed += 1
        const { companyId, accountId, id } = one.row
        markEntry.run(unindexed(one.row, failure).unindexed, companyId, accountId, id)
      }
      return failed
    },
    writeRepeats: (counts) => {
      for (const count of counts) upsertRepeats.run(...repeatValues(count))
    },
    writeTraffic: (tally) => {
      for (const row of tally.rows()) upsertTraffic.run(...trafficValues(row))
    },
  }
}
