// The back door of SQLite: a connection of the test's own.

import { hash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { indexPath } from '../../src/store/sqlite/index/index-file.ts'
import type { BackDoor } from './back-door.ts'
import { DELIVERY_COLUMNS, type DeliveryRow, LANE_COLUMNS, type LaneRow } from './lane-rows.ts'
import { countRefsIn, refCounts } from './ref-counts.ts'

const DERIVED = {
  event_index: 'company_id, account_id, event_id',
  conversations: 'company_id, account_id, channel_key',
  repeats: 'company_id, event_id',
  traffic: 'company_id, account_id, span, at, key_id',
} as const

const COUNT_REFS = countRefsIn('events')

export const sqliteBackDoor: BackDoor = {
  dumpIndex: async (url) =>
    using(`sqlite:${indexPath(sqlitePath(url))}`, { readOnly: true }, (db) => {
      const dump: Record<string, unknown[]> = {}
      for (const [table, key] of Object.entries(DERIVED)) {
        dump[table] = db.prepare(`SELECT * FROM ${table} ORDER BY ${key}`).all()
      }
      db.exec('CREATE VIRTUAL TABLE temp.words_in_events USING fts5vocab (main, event_words, instance)')
      const words = new Map<number, string[]>()
      for (const { doc, term } of db.prepare('SELECT doc, term FROM temp.words_in_events ORDER BY doc').all()) {
        words.set(doc as number, [...(words.get(doc as number) ?? []), term as string])
      }
      dump.event_words = Array.from(words, ([id, terms]) => ({ event_id: id, words: terms.toSorted() }))
      dump.cursors = db.prepare('SELECT * FROM index_cursors ORDER BY source').all()
      return dump
    }),
  countJournal: async (url) =>
    using(url, {}, (db) => {
      const count = (table: string) => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n)
      return { events: count('events'), resends: count('resends'), dedupe: count('dedupe') }
    }),
  countRefs: async (url) => using(url, { readOnly: true }, (db) => refCounts(db.prepare(COUNT_REFS).get()!)),
  dropDedupeKey: async (url) =>
    using(url, {}, (db) =>
      db.exec(`DROP TABLE dedupe; CREATE TABLE dedupe (company_id INTEGER NOT NULL, digest BLOB NOT NULL,
        event_id INTEGER NOT NULL, sha256 BLOB NOT NULL, minted_key BLOB NOT NULL) STRICT`),
    ),
  replacePayload: async (url, id, payload) =>
    using(url, {}, (db) => {
      db.prepare('UPDATE events SET payload = ? WHERE id = ?').run(payload, id)
    }),
  smugglePayload: async (url, id, payload) =>
    using(url, {}, (db) => {
      db.prepare('UPDATE events SET payload = ?, size = ?, sha256 = ? WHERE id = ?').run(
        payload,
        payload.byteLength,
        hash('sha256', payload, 'buffer'),
        id,
      )
    }),
  deleteKey: async (url, id) =>
    using(url, {}, (db) => void db.prepare('DELETE FROM dedupe WHERE event_id = ?').run(id)),
  deleteEvent: async (url, id) => using(url, {}, (db) => void db.prepare('DELETE FROM events WHERE id = ?').run(id)),
  refuseEvent: async (url, sourceRef) =>
    using(url, {}, (db) =>
      db.exec(`CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.source_ref = '${sourceRef}'
        BEGIN SELECT RAISE(ABORT, 'refused by the test'); END`),
    ),
  refuseEntry: async (url, contactName) =>
    using(`sqlite:${indexPath(sqlitePath(url))}`, {}, (db) =>
      db.exec(`CREATE TRIGGER refuse BEFORE INSERT ON event_index WHEN NEW.contact_name = '${contactName}'
        BEGIN SELECT RAISE(ABORT, 'refused by the test'); END`),
    ),
  refuseNothing: async (url) => {
    using(url, {}, (db) => db.exec('DROP TRIGGER IF EXISTS refuse'))
    using(`sqlite:${indexPath(sqlitePath(url))}`, {}, (db) => db.exec('DROP TRIGGER IF EXISTS refuse'))
  },
  dumpLanes: async (url) =>
    using(url, { readOnly: true }, (db) => ({
      lanes: db.prepare(`SELECT ${LANE_COLUMNS} FROM lanes`).all() as unknown as LaneRow[],
      deliveries: db
        .prepare(`SELECT ${DELIVERY_COLUMNS} FROM deliveries WHERE state IN ('pending', 'leased')`)
        .all() as unknown as DeliveryRow[],
    })),
}

export function sqlitePath(url: string): string {
  return url.slice('sqlite:'.length)
}

/** A connection that is closed again whatever happens. */
export function using<T>(url: string, options: { readOnly?: boolean }, use: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(sqlitePath(url), { timeout: 5000, ...options })
  try {
    return use(db)
  } finally {
    db.close()
  }
}
