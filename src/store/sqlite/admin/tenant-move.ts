// One tenant as it leaves a SQLite database or comes into one, beside a running server.

import type { DatabaseSync } from 'node:sqlite'
import type { Tenant } from '../../../model/principal.ts'
import type { CopyTable } from '../../contract/copy.ts'
import { StoreRefused } from '../../contract/failure.ts'
import {
  type MovedIds,
  moveStart,
  SURVEY_ROWS,
  type SurveyedTable,
  type TenantMove,
} from '../../contract/tenant-move.ts'
import { HAS_TENANT, MOVED, OTHER_SOURCE } from '../../copy-state.ts'
import { COPY_TABLES } from '../../copy-tables.ts'
import { inTransaction, storeFailure } from '../connection.ts'
import { readSequence, setSequence } from '../journal/sequence.ts'
import { insertRows, removeRows } from './copy-rows.ts'
import { setEndpointsMoved } from './endpoint-removal.ts'

const OF_TENANT = 'company_id = ? AND account_id = ?'
const NEXT_GENERATION = '(SELECT coalesce(max(generation), 0) + 1 FROM tokens)'
const SET_MOVED = `UPDATE tokens SET moved_to = ?, generation = ${NEXT_GENERATION} WHERE ${OF_TENANT}`
const HAS_TOKENS = `SELECT 1 FROM tokens WHERE ${OF_TENANT} LIMIT 1`
const IS_MOVED = `SELECT 1 FROM tokens WHERE ${OF_TENANT} AND moved_to IS NOT NULL LIMIT 1`
const SELECT_START = `SELECT after_id FROM tenant_gaps WHERE ${OF_TENANT}`
const INSERT_START = 'INSERT INTO tenant_gaps (company_id, account_id, from_id, after_id) VALUES (?, ?, ?, ?)'
const END_OF_SLICE =
  'SELECT max(id) AS last FROM (SELECT id FROM #table WHERE id > ? AND id <= ? ORDER BY id LIMIT ? + 0)'
const SURVEYS: Record<SurveyedTable, string> = {
  events: `SELECT id FROM events WHERE id > ? AND id <= ? AND ${OF_TENANT} ORDER BY id`,
  resends: `SELECT id FROM resends r WHERE id > ? AND id <= ? AND company_id = ?
    AND EXISTS (SELECT 1 FROM events e WHERE e.id = r.event_id AND e.account_id = ?) ORDER BY id`,
}

export function createTenantMove(db: DatabaseSync): TenantMove {
  const transaction = async <T>(work: () => T): Promise<T> => {
    try {
      return inTransaction(db, work)
    } catch (error) {
      if (error instanceof StoreRefused) throw error
      throw storeFailure(error)
    }
  }
  const has = (sql: string, { companyId, accountId }: Tenant) => db.prepare(sql).get(companyId, accountId) !== undefined
  const ids = (sql: string, ...values: (string | number)[]): number[] =>
    db
      .prepare(sql)
      .all(...values)
      .map((row) => Number(row.id))

  /** The last id that was given out. Refusals are numbered by SQLite itself, erasures by their newest row. */
  function lastId(name: string): number {
    if (name === 'events' || name === 'resends') return readSequence(db, name)
    if (name === 'refusals') {
      return Number(db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'refusals'").get()?.seq ?? 0)
    }
    return Number(db.prepare(`SELECT max(id) AS id FROM ${name}`).get()?.id ?? 0)
  }

  /** Inside a transaction of the caller. */
  function draw(tenant: Tenant, name: string, sequence: string, oldIds: readonly number[]): MovedIds {
    const last = lastId(sequence)
    if (sequence === 'events' || sequence === 'resends') setSequence(db, sequence, last + oldIds.length)
    const note = db.prepare(`INSERT INTO ${idsOf(tenant)} (name, old_id, new_id) VALUES (?, ?, ?)
      ON CONFLICT (name, old_id) DO UPDATE SET new_id = excluded.new_id`)
    const drawn = new Map(oldIds.map((old, n) => [old, last + 1 + n]))
    for (const [old, id] of drawn) note.run(name, old, id)
    return drawn
  }

  function setMoved(tenant: Tenant, to: string | null): void {
    db.prepare(SET_MOVED).run(to, tenant.companyId, tenant.accountId)
    setEndpointsMoved(db, tenant, to !== null)
  }

  return {
    state: (tenant) =>
      transaction(() => (has(HAS_TOKENS, tenant) ? (has(IS_MOVED, tenant) ? 'closed' : 'open') : null)),
    close: (tenant, address) => transaction(() => setMoved(tenant, address ?? '')),
    seal: (tenant) =>
      transaction(() =>
        db.exec(`CREATE TRIGGER IF NOT EXISTS ${triggerOf(tenant)} BEFORE INSERT ON events
          WHEN NEW.company_id = ${tenant.companyId} AND NEW.account_id = ${tenant.accountId}
          BEGIN SELECT RAISE(ABORT, '${MOVED}'); END`),
      ),
    reopen: (tenant) =>
      transaction(() => {
        db.exec(`DROP TRIGGER IF EXISTS ${triggerOf(tenant)}`)
        setMoved(tenant, null)
      }),
    survey: ({ companyId, accountId }, table, after, upTo) =>
      transaction(() => {
        const slice = db.prepare(END_OF_SLICE.replace('#table', table)).get(after, upTo, SURVEY_ROWS)
        const last = slice?.last as number | null
        return { ids: last === null ? [] : ids(SURVEYS[table], after, last, companyId, accountId), last }
      }),

    begin: (tenant, sourceUuid, sourceLast) =>
      transaction(() => {
        if (has(HAS_TOKENS, tenant)) throw new StoreRefused(HAS_TENANT)
        const source = db.prepare('SELECT value FROM meta WHERE key = ?').get(metaKeyOf(tenant))
        if (source && Buffer.from(source.value as Uint8Array).toString() !== sourceUuid) {
          throw new StoreRefused(OTHER_SOURCE)
        }
        const { companyId, accountId } = tenant
        if (source) return Number(db.prepare(SELECT_START).get(companyId, accountId)!.after_id)
        const last = readSequence(db, 'events')
        const start = moveStart(last, sourceLast)
        db.exec(`CREATE TABLE ${idsOf(tenant)} (
          name TEXT NOT NULL, old_id INTEGER NOT NULL, new_id INTEGER, PRIMARY KEY (name, old_id)) STRICT, WITHOUT ROWID`)
        db.prepare(INSERT_START).run(companyId, accountId, last, start)
        setSequence(db, 'events', start)
        db.prepare('INSERT INTO meta (key, value) VALUES (?, ?)').run(metaKeyOf(tenant), Buffer.from(sourceUuid))
        return start
      }),
    noteIds: (tenant, table, oldIds) =>
      transaction(() => {
        const note = db.prepare(`INSERT OR IGNORE INTO ${idsOf(tenant)} (name, old_id) VALUES (?, ?)`)
        for (const old of oldIds) note.run(table, old)
      }),
    lastNoted: (tenant, table) =>
      transaction(() => ids(`SELECT max(old_id) AS id FROM ${idsOf(tenant)} WHERE name = ?`, table)[0]!),
    noted: (tenant, table, after, limit) =>
      transaction(() =>
        ids(
          `SELECT old_id AS id FROM ${idsOf(tenant)} WHERE name = ? AND old_id > ? ORDER BY old_id LIMIT ? + 0`,
          table,
          after,
          limit,
        ),
      ),
    newIds: (tenant, table, oldIds) =>
      transaction(() => {
        const select = db.prepare(
          `SELECT new_id FROM ${idsOf(tenant)} WHERE name IN (?, ?) AND old_id = ? AND new_id IS NOT NULL`,
        )
        const gone = table === 'events' ? 'gone' : table
        return new Map(
          oldIds.flatMap((old) => {
            const row = select.get(table, gone, old)
            return row ? [[old, Number(row.new_id)] as const] : []
          }),
        )
      }),
    newestUpTo: (tenant, old) =>
      transaction(
        () =>
          ids(
            `SELECT new_id AS id FROM ${idsOf(tenant)} WHERE name = 'events' AND old_id <= ? AND new_id IS NOT NULL
            ORDER BY old_id DESC LIMIT 1`,
            old,
          )[0] ?? 0,
      ),
    insertNumbered: (tenant, table, oldIds, rowsOf) =>
      transaction(() => insertRows(db, table, rowsOf(draw(tenant, table.name, table.name, oldIds)))),
    numberGone: (tenant, oldIds) => transaction(() => void draw(tenant, 'gone', 'events', oldIds)),
    put: (table, rows) =>
      transaction(() => {
        removeRows(db, table, rows)
        insertRows(db, table, rows)
      }),
    finish: (tenant, tokens) =>
      transaction(() => {
        insertRows(db, tokensTable(), tokens)
        setMoved(tenant, null)
        db.exec(`DROP TABLE ${idsOf(tenant)}`)
        db.prepare('DELETE FROM meta WHERE key = ?').run(metaKeyOf(tenant))
      }),
  }
}

const tokensTable = (): CopyTable => COPY_TABLES.find(({ name }) => name === 'tokens')!
const triggerOf = ({ companyId, accountId }: Tenant): string => `moved_${companyId}_${accountId}`
/** Which old id became which, until the move is finished. */
const idsOf = ({ companyId, accountId }: Tenant): string => `moved_ids_${companyId}_${accountId}`
/** Its value is the source of an unfinished move. */
const metaKeyOf = ({ companyId, accountId }: Tenant): string => `tenant_move_${companyId}_${accountId}`
