// One tenant as it leaves a SQLite database or comes into one, beside a running server.

import type { DatabaseSync } from 'node:sqlite'
import type { Tenant } from '../../../model/principal.ts'
import type { CopyTable } from '../../contract/copy.ts'
import { StoreRefused } from '../../contract/failure.ts'
import type { MovedIds, MoveState, TenantMove } from '../../contract/tenant-move.ts'
import { ANOTHER_MOVE, HAS_TENANT, isSameMove, NO_TENANT } from '../../copy-state.ts'
import { COPY_TABLES } from '../../copy-tables.ts'
import { inTransaction, storeFailure } from '../connection.ts'
import { readSequence, setSequence } from '../journal/sequence.ts'
import { insertRows, removeRows } from './copy-rows.ts'

const STATE = 'tenant_move'
const OF_TENANT = 'company_id = ? AND account_id = ?'
const NEXT_GENERATION = '(SELECT coalesce(max(generation), 0) + 1 FROM tokens)'
const SET_MOVED = `UPDATE tokens SET moved_to = ?, generation = ${NEXT_GENERATION} WHERE ${OF_TENANT}`
const HAS_TOKENS = `SELECT 1 FROM tokens WHERE ${OF_TENANT} LIMIT 1`
const IS_MOVED = `SELECT 1 FROM tokens WHERE ${OF_TENANT} AND moved_to IS NOT NULL LIMIT 1`
const CREATE_IDS = `CREATE TABLE moved_ids (
  name TEXT NOT NULL, old_id INTEGER NOT NULL, new_id INTEGER NOT NULL, PRIMARY KEY (name, old_id)) STRICT, WITHOUT ROWID`

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

  /** The last id that was given out. Refusals are numbered by SQLite itself, erasures by their newest row. */
  function lastId(name: string): number {
    if (name === 'events' || name === 'resends') return readSequence(db, name)
    if (name === 'refusals') {
      return Number(db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'refusals'").get()?.seq ?? 0)
    }
    return Number(db.prepare(`SELECT max(id) AS id FROM ${name}`).get()?.id ?? 0)
  }

  return {
    close: (tenant, address) =>
      transaction(() => {
        if (!has(HAS_TOKENS, tenant)) throw new StoreRefused(NO_TENANT)
        const { companyId, accountId } = tenant
        db.exec(`CREATE TRIGGER IF NOT EXISTS ${triggerOf(tenant)} BEFORE INSERT ON events
          WHEN NEW.company_id = ${companyId} AND NEW.account_id = ${accountId}
          BEGIN SELECT RAISE(ABORT, 'the tenant has moved to another database'); END`)
        db.prepare(SET_MOVED).run(address ?? '', companyId, accountId)
      }),
    reopen: (tenant) =>
      transaction(() => {
        db.exec(`DROP TRIGGER IF EXISTS ${triggerOf(tenant)}`)
        db.prepare(SET_MOVED).run(null, tenant.companyId, tenant.accountId)
      }),
    isClosed: (tenant) => transaction(() => has(IS_MOVED, tenant)),
    begin: (tenant, sourceUuid, last) =>
      transaction(() => {
        const state = readState(db)
        if (state && !isSameMove(state, tenant, sourceUuid)) throw new StoreRefused(ANOTHER_MOVE)
        if (has(HAS_TOKENS, tenant)) throw new StoreRefused(HAS_TENANT)
        if (!state) {
          db.exec(CREATE_IDS)
          const before = readSequence(db, 'events')
          if (before <= last) {
            db.prepare('INSERT INTO id_gaps (after_id, before_id, begun_at) VALUES (?, ?, ?)').run(
              before,
              last + 1,
              Date.now(),
            )
            setSequence(db, 'events', last + 1)
          }
          saveState(db, { ...tenantOf(tenant), sourceUuid, afterId: Math.max(before, last + 1) })
        }
        const moved = new Map<string, MovedIds>()
        for (const { name, old_id: old, new_id: id } of db
          .prepare('SELECT name, old_id, new_id FROM moved_ids')
          .iterate()) {
          const ids = moved.get(String(name)) ?? new Map<number, number>()
          moved.set(String(name), ids.set(Number(old), Number(id)))
        }
        return moved
      }),
    insertNumbered: (table, oldIds, rowsOf) =>
      transaction(() => {
        const last = lastId(table.name)
        const ids = oldIds.map((_, n) => last + 1 + n)
        if (table.follows) setSequence(db, table.follows, last + ids.length)
        insertRows(db, table, rowsOf(ids))
        const note = db.prepare('INSERT INTO moved_ids (name, old_id, new_id) VALUES (?, ?, ?)')
        for (const [n, old] of oldIds.entries()) note.run(table.name, old, ids[n]!)
        return ids
      }),
    put: (table, rows) =>
      transaction(() => {
        removeRows(db, table, rows)
        insertRows(db, table, rows)
      }),
    finish: (tenant, tokens) =>
      transaction(() => {
        const { companyId, accountId, afterId } = readState(db)!
        db.prepare('INSERT INTO tenant_gaps (company_id, account_id, after_id) VALUES (?, ?, ?)').run(
          companyId,
          accountId,
          afterId,
        )
        insertRows(db, tokensTable(), tokens)
        db.prepare(SET_MOVED).run(null, tenant.companyId, tenant.accountId)
        db.exec(`DROP TABLE moved_ids; DELETE FROM meta WHERE key = '${STATE}'`)
      }),
  }
}

const tokensTable = (): CopyTable => COPY_TABLES.find(({ name }) => name === 'tokens')!
const triggerOf = ({ companyId, accountId }: Tenant): string => `moved_${companyId}_${accountId}`
const tenantOf = ({ companyId, accountId }: Tenant): Tenant => ({ companyId, accountId })

function readState(db: DatabaseSync): MoveState | null {
  const row = db.prepare('SELECT CAST(value AS TEXT) AS value FROM meta WHERE key = ?').get(STATE)
  return row ? (JSON.parse(String(row.value)) as MoveState) : null
}

function saveState(db: DatabaseSync, state: MoveState): void {
  db.prepare('INSERT INTO meta (key, value) VALUES (?, ?)').run(STATE, Buffer.from(JSON.stringify(state)))
}
