// Tokens on PostgreSQL. Changes run one after the other, under a lock: a generation is the highest plus one, so that no
// node can read past a generation that commits later. The lock also keeps a key id unique over all companies, which no
// index does (company_id is part of each).

import { IMPORTED_END, IMPORTED_PREFIX, importedTokenKey } from '../../../model/imported-token.ts'
import type { TokenRecord } from '../../../model/token.ts'
import { formatRate } from '../../../runtime/rate.ts'
import { StoreFailure } from '../../contract/failure.ts'
import type { NewToken, TokenStore } from '../../contract/tokens.ts'
import { TOKEN_COLUMNS, tokenRecord, tokenValues } from '../../rows.ts'
import { OF_KIND, tokenList } from '../../token-list.ts'
import { bigints, texts } from '../connection/binary-array.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import { LOCKS } from '../connection/locks.ts'
import type { Pool } from '../connection/pool.ts'

const NEXT_GENERATION = '(SELECT coalesce(max(generation), 0) + 1 FROM intray.tokens)'
/** A new token of a tenant that was moved is answered as the others are. */
const MOVED_TO = '(SELECT max(moved_to) FROM intray.tokens WHERE company_id = $4 AND account_id = $3)'
const INSERT = `INSERT INTO intray.tokens (key_id, hash, account_id, company_id, scope, label, is_active, expires_at,
    created_at, rotated_from, rate_limit, recipe, generation, moved_to) VALUES ($1, $2, $3, $4, $5, $6, true, $7, $8, $9, $10, $11, ${NEXT_GENERATION}, ${MOVED_TO})`
const SELECT: Statement = { name: 'intray_token', text: `SELECT ${TOKEN_COLUMNS} FROM intray.tokens WHERE key_id = $1` }
const SELECT_OF_TENANT = `SELECT ${TOKEN_COLUMNS} FROM intray.tokens WHERE company_id = $1 AND account_id = $2 AND #kind
  AND (created_at, key_id) < ($3, $4) ORDER BY created_at DESC, key_id DESC LIMIT $5`
/** Skips from tenant to tenant by index instead of reading every token. */
const SELECT_TENANTS = `WITH RECURSIVE tenants AS (
    (SELECT company_id, account_id FROM intray.tokens WHERE (company_id, account_id) > ($1, $2)
      ORDER BY company_id, account_id LIMIT 1)
    UNION ALL
    SELECT next.company_id, next.account_id FROM tenants t CROSS JOIN LATERAL (
      SELECT company_id, account_id FROM intray.tokens
      WHERE (company_id, account_id) > (t.company_id, t.account_id) ORDER BY company_id, account_id LIMIT 1) next)
  SELECT company_id, account_id FROM tenants LIMIT $3`
const SELECT_TENANT: Statement = {
  name: 'intray_tenant',
  text: 'SELECT 1 FROM intray.tokens WHERE company_id = $1 AND account_id = $2 LIMIT 1',
}
const SELECT_SUCCESSOR = 'SELECT key_id FROM intray.tokens WHERE rotated_from = $1'
const SELECT_IMPORTED = `SELECT 1 FROM intray.tokens WHERE key_id > '${IMPORTED_PREFIX}' AND key_id < '${IMPORTED_END}' LIMIT 1`
const SELECT_CHANGED = `SELECT ${TOKEN_COLUMNS} FROM intray.tokens WHERE generation > $1`
const SELECT_GENERATION: Statement = {
  name: 'intray_generation',
  text: 'SELECT coalesce(max(generation), 0) AS generation FROM intray.tokens',
}
const SET_ACTIVE = `UPDATE intray.tokens SET is_active = $2, disabled_at = $3, generation = ${NEXT_GENERATION}
  WHERE key_id = $1`
const SET_RATE_LIMIT = `UPDATE intray.tokens SET rate_limit = $2, generation = ${NEXT_GENERATION} WHERE key_id = $1`
const SET_EXPIRY = `UPDATE intray.tokens SET expires_at = least(expires_at, $2), generation = ${NEXT_GENERATION}
  WHERE key_id = $1`
const ADVANCE = `UPDATE intray.tokens SET generation = ${NEXT_GENERATION} WHERE key_id = $1`
const TOUCH = `UPDATE intray.tokens t SET last_used_at = used.at
  FROM (SELECT key_id, max(at) AS at FROM unnest($1::text[], $2::bigint[]) AS u (key_id, at) GROUP BY key_id) used
  WHERE t.key_id = used.key_id AND (t.last_used_at IS NULL OR t.last_used_at < used.at)`

export function createTokenStore(pool: Pool, dedupeKey: Uint8Array): TokenStore {
  const change = <T>(work: (connection: Connection) => Promise<T>): Promise<T> => changeTokens(pool, work)

  return {
    create: (token) => change((connection) => insertToken(connection, token)),
    createFirst: (token) =>
      change(async (connection) => {
        const [row] = await connection.query<{ generation: number }>(SELECT_GENERATION)
        if (row!.generation > 0) return false
        await insertToken(connection, token)
        return true
      }),
    find: (keyId) => pool.lookUp((connection) => find(connection, keyId)),
    list: async (query = {}) => {
      const { sql, values } = tokenList('intray.tokens', '$', query)
      return (await pool.use((connection) => connection.query(sql, values))).map(tokenRecord)
    },
    listOf: async ({ companyId, accountId }, before, limit, kind = 'token') => {
      const below = [before?.createdAt ?? Number.MAX_SAFE_INTEGER, before?.keyId ?? '']
      const values = [companyId, accountId, ...below, limit]
      return (
        await pool.use((connection) => connection.query(SELECT_OF_TENANT.replace('#kind', OF_KIND[kind]), values))
      ).map(tokenRecord)
    },
    tenants: async (after, limit) => {
      const values = [after?.companyId ?? 0, after?.accountId ?? 0, limit]
      const rows = await pool.use((connection) => connection.query(SELECT_TENANTS, values))
      return rows.map((row) => ({ accountId: row.account_id as number, companyId: row.company_id as number }))
    },
    hasTenant: ({ companyId, accountId }) =>
      pool.lookUp(async (connection) => (await connection.query(SELECT_TENANT, [companyId, accountId])).length > 0),
    successorOf: (keyId) => pool.use((connection) => successorOf(connection, keyId)),
    setActive: (keyId, isActive, now) => change((connection) => setActive(connection, keyId, isActive, now)),
    setRateLimit: (keyId, rateLimit) =>
      change(async (connection) => {
        await connection.query(SET_RATE_LIMIT, [keyId, rateLimit && formatRate(rateLimit)])
        return find(connection, keyId)
      }),
    rotate: (successor, oldExpiresAt, now) =>
      change((connection) => rotateToken(connection, successor, oldExpiresAt, now)),
    // Under the lock as well: two nodes that flush the same tokens in different orders would deadlock.
    touch: (uses) =>
      change(async (connection) => {
        await connection.query(TOUCH, [
          texts(uses.map(({ keyId }) => keyId)),
          bigints(uses.map(({ usedAt }) => usedAt)),
        ])
      }),
    importKey: async () => importedTokenKey(dedupeKey),
    hasImported: async () => (await pool.lookUp((connection) => connection.query(SELECT_IMPORTED))).length > 0,
    generation: async () => {
      const [row] = await pool.lookUp((connection) => connection.query<{ generation: number }>(SELECT_GENERATION))
      return row!.generation
    },
    changedSince: async (generation) =>
      (await pool.lookUp((connection) => connection.query(SELECT_CHANGED, [generation]))).map(tokenRecord),
  }
}

/** Under the lock of tokens. */
export function changeTokens<T>(pool: Pool, work: (connection: Connection) => Promise<T>): Promise<T> {
  return pool.transaction(async (connection) => {
    await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.tokens)
    return work(connection)
  })
}

/** Inside of a change. */
export async function rotateToken(
  connection: Connection,
  successor: NewToken,
  oldExpiresAt: number | null,
  now: number,
): Promise<TokenRecord | null> {
  const keyId = successor.rotatedFrom ?? ''
  if (!(await find(connection, keyId))) return null
  if ((await successorOf(connection, keyId)) !== null)
    throw new StoreFailure('rejected', `token ${keyId} was rotated already`)
  await insertToken(connection, successor)
  if (oldExpiresAt === null) return setActive(connection, keyId, false, now)
  await connection.query(SET_EXPIRY, [keyId, oldExpiresAt])
  return find(connection, keyId)
}

/** Inside of a change that is kept beside the token: every node reads it again. */
export async function advanceToken(connection: Connection, keyId: string): Promise<TokenRecord | null> {
  await connection.query(ADVANCE, [keyId])
  return find(connection, keyId)
}

async function find(connection: Connection, keyId: string): Promise<TokenRecord | null> {
  const [row] = await connection.query(SELECT, [keyId])
  return row ? tokenRecord(row) : null
}

async function successorOf(connection: Connection, keyId: string): Promise<string | null> {
  const [row] = await connection.query<{ key_id: string }>(SELECT_SUCCESSOR, [keyId])
  return row?.key_id ?? null
}

/** Inside of a change. */
export async function insertToken(connection: Connection, token: NewToken): Promise<void> {
  if (await find(connection, token.keyId)) {
    throw new StoreFailure('rejected', `a token with key id ${token.keyId} exists already`)
  }
  await connection.query(INSERT, tokenValues(token))
}

async function setActive(
  connection: Connection,
  keyId: string,
  isActive: boolean,
  now: number,
): Promise<TokenRecord | null> {
  await connection.query(SET_ACTIVE, [keyId, isActive, isActive ? null : now])
  return find(connection, keyId)
}
