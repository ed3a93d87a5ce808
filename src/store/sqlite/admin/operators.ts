// Operators, sessions, sign-in links and the audit log on SQLite.

import type { DatabaseSync } from 'node:sqlite'
import { type AuditEntry, isLastAdmin, type OperatorRecord, type OperatorRole } from '../../../model/operator.ts'
import { StoreFailure } from '../../contract/failure.ts'
import type { NewOperator, SessionRecord, SignInLink } from '../../contract/operators.ts'
import { auditEntry, auditValues, operatorRecord, sessionRecord, tenantsText } from '../../rows.ts'
import { inTransaction } from '../connection.ts'

const OPERATOR = 'id, name, role, tenants, password, operators.created_at AS operator_created_at, disabled_at'
const INSERT = 'INSERT INTO operators (id, name, role, tenants, password, created_at) VALUES (?, ?, ?, ?, ?, ?)'
const SELECT_ANY = 'SELECT 1 FROM operators LIMIT 1'
const SELECT_BY_NAME = `SELECT ${OPERATOR} FROM operators WHERE name = ?`
const SELECT_ALL = `SELECT ${OPERATOR} FROM operators ORDER BY name`
const SET_PASSWORD = 'UPDATE operators SET password = ? WHERE name = ?'
const SET_DISABLED = 'UPDATE operators SET disabled_at = ? WHERE name = ?'
const SET_ROLE = 'UPDATE operators SET role = ? WHERE name = ?'
const DELETE = 'DELETE FROM operators WHERE name = ?'
const INSERT_SESSION = `INSERT INTO sessions (hash, operator_id, created_at, expires_at, seen_at)
  VALUES (?, ?, ?, ?, ?)`
const SELECT_AS_IT_WAS = 'SELECT 1 FROM operators WHERE id = ? AND disabled_at IS NULL AND password IS ?'
const SELECT_EXCESS = 'SELECT hash FROM sessions WHERE operator_id = ? ORDER BY created_at DESC LIMIT -1 OFFSET ?'
const SELECT_SESSION = `SELECT hash, sessions.created_at, expires_at, seen_at, ${OPERATOR}
  FROM sessions JOIN operators ON id = operator_id WHERE hash = ? AND expires_at > ? AND disabled_at IS NULL`
const TOUCH_SESSION = 'UPDATE sessions SET seen_at = max(seen_at, ?) WHERE hash = ?'
const DELETE_SESSION = 'DELETE FROM sessions WHERE hash = ?'
const DELETE_SESSIONS = 'DELETE FROM sessions WHERE operator_id = ?'
const DELETE_OVER = 'DELETE FROM sessions WHERE expires_at <= ?'
const REPLACE_LINK = 'INSERT OR REPLACE INTO sign_in_links (operator_id, hash, expires_at) VALUES (?, ?, ?)'
const SELECT_LINK = `SELECT ${OPERATOR} FROM sign_in_links JOIN operators ON id = operator_id
  WHERE hash = ? AND expires_at > ? AND disabled_at IS NULL`
const DELETE_LINK = 'DELETE FROM sign_in_links WHERE operator_id = ?'
const DELETE_OLD_LINKS = 'DELETE FROM sign_in_links WHERE expires_at <= ?'
const AUDIT = 'id, at, operator_id, operator, action, company_id, account_id, target, request_id, address'
const INSERT_AUDIT = `INSERT INTO audit (${AUDIT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
const SELECT_AUDIT = `SELECT ${AUDIT} FROM audit WHERE id < ? ORDER BY id DESC LIMIT ? + 0`
const DELETE_OLD_AUDIT = 'DELETE FROM audit WHERE at < ?'

/** Sorts above every UUID. */
const NEWEST = 'g'

export function prepareOperatorReads(db: DatabaseSync) {
  return {
    findByName: (name: string): OperatorRecord | null => {
      const row = db.prepare(SELECT_BY_NAME).get(name)
      return row ? operatorRecord(row) : null
    },
    list: (): OperatorRecord[] => db.prepare(SELECT_ALL).all().map(operatorRecord),
    hasLink: (hash: Uint8Array, now: number): boolean => db.prepare(SELECT_LINK).get(hash, now) !== undefined,
    findSession: (hash: Uint8Array, now: number) => {
      const row = db.prepare(SELECT_SESSION).get(hash, now)
      return row ? { session: sessionRecord(row), operator: operatorRecord(row) } : null
    },
    listAudit: (beforeId: string | null, limit: number): AuditEntry[] =>
      db
        .prepare(SELECT_AUDIT)
        .all(beforeId ?? NEWEST, limit)
        .map(auditEntry),
  }
}

export function prepareOperatorWrites(db: DatabaseSync) {
  const { findByName, list } = prepareOperatorReads(db)

  function insert({ id, name, role, tenants, password, createdAt }: NewOperator): void {
    if (findByName(name)) throw new StoreFailure('rejected', `an operator named ${name} exists already`)
    db.prepare(INSERT).run(id, name, role, tenantsText(tenants), password, createdAt)
  }

  function signOut(operatorId: string): void {
    db.prepare(DELETE_SESSIONS).run(operatorId)
    db.prepare(DELETE_LINK).run(operatorId)
  }

  function change(name: string, write: () => void): OperatorRecord | null {
    return inTransaction(db, () => {
      write()
      const operator = findByName(name)
      if (operator) signOut(operator.id)
      return operator
    })
  }

  return {
    create: (operator: NewOperator): void => inTransaction(db, () => insert(operator)),
    createFirst: (operator: NewOperator): boolean =>
      inTransaction(db, () => {
        if (db.prepare(SELECT_ANY).get()) return false
        insert(operator)
        return true
      }),
    setPassword: (name: string, password: string): OperatorRecord | null =>
      change(name, () => db.prepare(SET_PASSWORD).run(password, name)),
    setDisabled: (name: string, disabledAt: number | null): OperatorRecord | null =>
      change(name, () => db.prepare(SET_DISABLED).run(disabledAt, name)),
    setRole: (name: string, role: OperatorRole, evenLastAdmin: boolean): OperatorRecord | 'last_admin' | null =>
      inTransaction(db, () => {
        const operator = findByName(name)
        if (!operator) return null
        if (role !== 'admin' && !evenLastAdmin && isLastAdmin(operator, list())) return 'last_admin'
        db.prepare(SET_ROLE).run(role, name)
        signOut(operator.id)
        return { ...operator, role }
      }),
    remove: (name: string, evenLastAdmin: boolean): OperatorRecord | 'last_admin' | null =>
      inTransaction(db, () => {
        const operator = findByName(name)
        if (!operator) return null
        if (!evenLastAdmin && isLastAdmin(operator, list())) return 'last_admin'
        signOut(operator.id)
        db.prepare(DELETE).run(name)
        return operator
      }),
    openSession: (
      { hash, operatorId, createdAt, expiresAt, seenAt }: SessionRecord,
      maxSessions: number,
      password?: string | null,
    ): boolean =>
      inTransaction(db, () => {
        if (password !== undefined && !db.prepare(SELECT_AS_IT_WAS).get(operatorId, password)) return false
        db.prepare(INSERT_SESSION).run(hash, operatorId, createdAt, expiresAt, seenAt)
        const excess = db.prepare(SELECT_EXCESS).all(operatorId, maxSessions)
        for (const row of excess) db.prepare(DELETE_SESSION).run(row.hash as Uint8Array)
        return true
      }),
    touchSession: (hash: Uint8Array, seenAt: number): void => {
      db.prepare(TOUCH_SESSION).run(seenAt, hash)
    },
    closeSession: (hash: Uint8Array): void => {
      db.prepare(DELETE_SESSION).run(hash)
    },
    closeSessions: (operatorId: string): void => {
      db.prepare(DELETE_SESSIONS).run(operatorId)
    },
    addLink: ({ operatorId, hash, expiresAt }: SignInLink): void => {
      db.prepare(REPLACE_LINK).run(operatorId, hash, expiresAt)
    },
    useLink: (hash: Uint8Array, now: number): OperatorRecord | null =>
      inTransaction(db, () => {
        const row = db.prepare(SELECT_LINK).get(hash, now)
        if (!row) return null
        db.prepare(DELETE_LINK).run(row.id as string)
        return operatorRecord(row)
      }),
    addAudit: (entry: AuditEntry): void => {
      db.prepare(INSERT_AUDIT).run(...auditValues(entry))
    },
    prune: (now: number, auditBefore: number): void =>
      inTransaction(db, () => {
        db.prepare(DELETE_OVER).run(now)
        db.prepare(DELETE_OLD_LINKS).run(now)
        db.prepare(DELETE_OLD_AUDIT).run(auditBefore)
      }),
  }
}
