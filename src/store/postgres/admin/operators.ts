// Operators, sessions, sign-in links and the audit log on PostgreSQL.

import { isLastAdmin, type OperatorRecord } from '../../../model/operator.ts'
import { StoreFailure } from '../../contract/failure.ts'
import type { NewOperator, OperatorStore } from '../../contract/operators.ts'
import { auditEntry, auditValues, operatorRecord, sessionRecord, tenantsText } from '../../rows.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { LOCKS } from '../connection/locks.ts'
import type { Pool } from '../connection/pool.ts'

const OPERATOR = `id, name, role, tenants, password, intray.operators.created_at AS operator_created_at, disabled_at`
const INSERT = `INSERT INTO intray.operators (id, name, role, tenants, password, created_at)
  VALUES ($1, $2, $3, $4, $5, $6)`
const SELECT_BY_NAME = `SELECT ${OPERATOR} FROM intray.operators WHERE name = $1`
const SELECT_ALL = `SELECT ${OPERATOR} FROM intray.operators ORDER BY name`
const SET_PASSWORD = 'UPDATE intray.operators SET password = $1 WHERE name = $2'
const SET_DISABLED = 'UPDATE intray.operators SET disabled_at = $1 WHERE name = $2'
const SET_ROLE = 'UPDATE intray.operators SET role = $1 WHERE name = $2'
const DELETE = 'DELETE FROM intray.operators WHERE name = $1'
const SELECT_AS_IT_WAS = `SELECT 1 FROM intray.operators WHERE id = $1 AND disabled_at IS NULL
  AND password IS NOT DISTINCT FROM $2::text`
const INSERT_SESSION = `INSERT INTO intray.sessions (hash, operator_id, created_at, expires_at, seen_at)
  VALUES ($1, $2, $3, $4, $5)`
const DELETE_EXCESS = `DELETE FROM intray.sessions WHERE hash = ANY (ARRAY(
  SELECT hash FROM intray.sessions WHERE operator_id = $1 ORDER BY created_at DESC OFFSET $2))`
const SELECT_SESSION: Statement = {
  name: 'intray_session',
  text: `SELECT hash, s.created_at, s.expires_at, s.seen_at, ${OPERATOR}
    FROM intray.sessions s JOIN intray.operators ON id = s.operator_id
    WHERE hash = $1 AND s.expires_at > $2 AND disabled_at IS NULL`,
}
const TOUCH_SESSION = 'UPDATE intray.sessions SET seen_at = greatest(seen_at, $2) WHERE hash = $1'
const DELETE_SESSION = 'DELETE FROM intray.sessions WHERE hash = $1'
const DELETE_SESSIONS = 'DELETE FROM intray.sessions WHERE operator_id = $1'
const REPLACE_LINK = `INSERT INTO intray.sign_in_links (operator_id, hash, expires_at) VALUES ($1, $2, $3)
  ON CONFLICT (operator_id) DO UPDATE SET hash = excluded.hash, expires_at = excluded.expires_at`
/** Only the caller that deletes the link gets the operator. */
const USE_LINK = `WITH used AS (DELETE FROM intray.sign_in_links WHERE hash = $1 AND expires_at > $2
    RETURNING operator_id)
  SELECT ${OPERATOR} FROM used JOIN intray.operators ON id = used.operator_id WHERE disabled_at IS NULL`
const DELETE_LINK = 'DELETE FROM intray.sign_in_links WHERE operator_id = $1'
const AUDIT = 'id, at, operator_id, operator, action, company_id, account_id, target, request_id, address'
const INSERT_AUDIT = `INSERT INTO intray.audit (${AUDIT}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
const SELECT_AUDIT = `SELECT ${AUDIT} FROM intray.audit WHERE id < $1 ORDER BY id DESC LIMIT $2`

/** Sorts above every UUID. */
const NEWEST = 'g'

export function createOperatorStore(pool: Pool): OperatorStore {
  /** Changes run one after the other: a name is looked up before it is written. */
  const change = <T>(work: (connection: Connection) => Promise<T>): Promise<T> =>
    pool.transaction(async (connection) => {
      await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.operators)
      return work(connection)
    })
  const run = (sql: string, values: Parameters<Connection['query']>[1]): Promise<void> =>
    pool.use(async (connection) => {
      await connection.query(sql, values)
    })
  const changeOne = (sql: string, value: string | number | null, name: string): Promise<OperatorRecord | null> =>
    change(async (connection) => {
      await connection.query(sql, [value, name])
      const operator = await findByName(connection, name)
      if (!operator) return null
      await signOut(connection, operator)
      return operator
    })

  return {
    create: (operator) => change((connection) => insert(connection, operator)),
    createFirst: (operator) =>
      change(async (connection) => {
        if ((await connection.query('SELECT 1 FROM intray.operators LIMIT 1')).length > 0) return false
        await insert(connection, operator)
        return true
      }),
    findByName: (name) => pool.use((connection) => findByName(connection, name)),
    list: () => pool.use(list),
    setPassword: (name, password) => changeOne(SET_PASSWORD, password, name),
    setDisabled: (name, disabledAt) => changeOne(SET_DISABLED, disabledAt, name),
    setRole: (name, role, evenLastAdmin) =>
      change(async (connection) => {
        const operator = await findByName(connection, name)
        if (!operator) return null
        if (role !== 'admin' && !evenLastAdmin && isLastAdmin(operator, await list(connection))) return 'last_admin'
        await connection.query(SET_ROLE, [role, name])
        await signOut(connection, operator)
        return { ...operator, role }
      }),
    remove: (name, evenLastAdmin) =>
      change(async (connection) => {
        const operator = await findByName(connection, name)
        if (!operator) return null
        if (!evenLastAdmin && isLastAdmin(operator, await list(connection))) return 'last_admin'
        await signOut(connection, operator)
        await connection.query(DELETE, [name])
        return operator
      }),
    openSession: ({ hash, operatorId, createdAt, expiresAt, seenAt }, maxSessions, password) =>
      change(async (connection) => {
        if (password !== undefined) {
          const found = await connection.query(SELECT_AS_IT_WAS, [operatorId, password])
          if (found.length === 0) return false
        }
        await connection.query(INSERT_SESSION, [hash, operatorId, createdAt, expiresAt, seenAt])
        await connection.query(DELETE_EXCESS, [operatorId, maxSessions])
        return true
      }),
    findSession: async (hash, now) => {
      const [row] = await pool.lookUp((connection) => connection.query(SELECT_SESSION, [hash, now]))
      return row ? { session: sessionRecord(row), operator: operatorRecord(row) } : null
    },
    touchSession: (hash, seenAt) => run(TOUCH_SESSION, [hash, seenAt]),
    closeSession: (hash) => run(DELETE_SESSION, [hash]),
    closeSessions: (operatorId) => run(DELETE_SESSIONS, [operatorId]),
    addLink: ({ operatorId, hash, expiresAt }) => run(REPLACE_LINK, [operatorId, hash, expiresAt]),
    useLink: async (hash, now) => {
      const [row] = await pool.use((connection) => connection.query(USE_LINK, [hash, now]))
      return row ? operatorRecord(row) : null
    },
    addAudit: (entry) => run(INSERT_AUDIT, auditValues(entry)),
    listAudit: async (beforeId, limit) => {
      const rows = await pool.use((connection) => connection.query(SELECT_AUDIT, [beforeId ?? NEWEST, limit]))
      return rows.map(auditEntry)
    },
    prune: (now, auditBefore) =>
      pool.transaction(async (connection) => {
        await connection.query('DELETE FROM intray.sessions WHERE expires_at <= $1', [now])
        await connection.query('DELETE FROM intray.sign_in_links WHERE expires_at <= $1', [now])
        await connection.query('DELETE FROM intray.audit WHERE at < $1', [auditBefore])
      }),
  }
}

async function findByName(connection: Connection, name: string): Promise<OperatorRecord | null> {
  const [row] = await connection.query(SELECT_BY_NAME, [name])
  return row ? operatorRecord(row) : null
}

async function list(connection: Connection): Promise<OperatorRecord[]> {
  return (await connection.query(SELECT_ALL)).map(operatorRecord)
}

async function signOut(connection: Connection, { id }: OperatorRecord): Promise<void> {
  await connection.query(DELETE_SESSIONS, [id])
  await connection.query(DELETE_LINK, [id])
}

async function insert(connection: Connection, operator: NewOperator): Promise<void> {
  const { id, name, role, tenants, password, createdAt } = operator
  if (await findByName(connection, name)) {
    throw new StoreFailure('rejected', `an operator named ${name} exists already`)
  }
  await connection.query(INSERT, [id, name, role, tenantsText(tenants), password, createdAt])
}
