// Tokens on SQLite. Each change takes the highest generation plus one; tokens are never deleted, so generations only
// grow.

import type { DatabaseSync } from 'node:sqlite'
import type { Tenant } from '../../../model/principal.ts'
import { IMPORTED_END, IMPORTED_PREFIX } from '../../../model/imported-token.ts'
import type { TokenRecord } from '../../../model/token.ts'
import { formatRate } from '../../../runtime/rate.ts'
import { StoreFailure } from '../../contract/failure.ts'
import type { NewToken, TokenKind, TokenPosition, TokenQuery, TokenUse } from '../../contract/tokens.ts'
import { TOKEN_COLUMNS, tokenRecord, tokenValues } from '../../rows.ts'
import { OF_KIND, tokenList } from '../../token-list.ts'
import { inTransaction } from '../connection.ts'

const NEXT_GENERATION = '(SELECT coalesce(max(generation), 0) + 1 FROM tokens)'
/** A new token of a tenant that was moved is answered as the others are. */
const MOVED_TO = '(SELECT max(moved_to) FROM tokens WHERE company_id = ?4 AND account_id = ?3)'
const INSERT = `INSERT INTO tokens (key_id, hash, account_id, company_id, scope, label, is_active, expires_at, created_at,
    rotated_from, rate_limit, recipe, generation, moved_to) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?9, ?10, ?11, ${NEXT_GENERATION}, ${MOVED_TO})`
const SELECT = `SELECT ${TOKEN_COLUMNS} FROM tokens WHERE key_id = ?`
const selectOfTenant = (kind: TokenKind) => `SELECT ${TOKEN_COLUMNS} FROM tokens
  WHERE company_id = ? AND account_id = ? AND ${OF_KIND[kind]}
  AND (created_at, key_id) < (?, ?) ORDER BY created_at DESC, key_id DESC LIMIT ? + 0`
const SELECT_NEXT_TENANT = `SELECT company_id, account_id FROM tokens WHERE (company_id, account_id) > (?, ?)
  ORDER BY company_id, account_id LIMIT 1`
const SELECT_TENANT = 'SELECT 1 FROM tokens WHERE company_id = ? AND account_id = ? LIMIT 1'
const SELECT_SUCCESSOR = 'SELECT key_id FROM tokens WHERE rotated_from = ?'
const SELECT_IMPORTED = `SELECT 1 FROM tokens WHERE key_id > '${IMPORTED_PREFIX}' AND key_id < '${IMPORTED_END}' LIMIT 1`
const SELECT_CHANGED = `SELECT ${TOKEN_COLUMNS} FROM tokens WHERE generation > ?`
const SELECT_GENERATION = 'SELECT coalesce(max(generation), 0) AS generation FROM tokens'
const SET_ACTIVE = `UPDATE tokens SET is_active = ?, disabled_at = ?, generation = ${NEXT_GENERATION} WHERE key_id = ?`
const SET_RATE_LIMIT = `UPDATE tokens SET rate_limit = ?, generation = ${NEXT_GENERATION} WHERE key_id = ?`
const SET_EXPIRY = `UPDATE tokens SET expires_at = min(coalesce(expires_at, ?1), ?1), generation = ${NEXT_GENERATION}
  WHERE key_id = ?2`
const ADVANCE = `UPDATE tokens SET generation = ${NEXT_GENERATION} WHERE key_id = ?`
const TOUCH = 'UPDATE tokens SET last_used_at = ?1 WHERE key_id = ?2 AND (last_used_at IS NULL OR last_used_at < ?1)'

export function prepareTokenReads(db: DatabaseSync) {
  const select = db.prepare(SELECT)
  const selectGeneration = db.prepare(SELECT_GENERATION)
  return {
    find(keyId: string): TokenRecord | null {
      const row = select.get(keyId)
      return row ? tokenRecord(row) : null
    },
    list(query: TokenQuery): TokenRecord[] {
      const { sql, values } = tokenList('tokens', '?', query)
      return db
        .prepare(sql)
        .all(...values)
        .map(tokenRecord)
    },
    listOf: (
      { companyId, accountId }: Tenant,
      before: TokenPosition | null,
      limit: number,
      kind: TokenKind = 'token',
    ): TokenRecord[] =>
      db
        .prepare(selectOfTenant(kind))
        .all(companyId, accountId, before?.createdAt ?? Number.MAX_SAFE_INTEGER, before?.keyId ?? '', limit)
        .map(tokenRecord),
    /** Skips from tenant to tenant by index instead of reading every token. */
    tenants(after: Tenant | null, limit: number): Tenant[] {
      const next = db.prepare(SELECT_NEXT_TENANT)
      const found: Tenant[] = []
      for (let at = after; found.length < limit; ) {
        const row = next.get(at?.companyId ?? 0, at?.accountId ?? 0)
        if (!row) break
        at = { accountId: row.account_id as number, companyId: row.company_id as number }
        found.push(at)
      }
      return found
    },
    hasTenant: ({ companyId, accountId }: Tenant): boolean =>
      db.prepare(SELECT_TENANT).get(companyId, accountId) !== undefined,
    successorOf: (keyId: string): string | null =>
      (db.prepare(SELECT_SUCCESSOR).get(keyId)?.key_id as string | undefined) ?? null,
    hasImported: (): boolean => db.prepare(SELECT_IMPORTED).get() !== undefined,
    generation: (): number => Number(selectGeneration.get()?.generation),
    changedSince: (generation: number): TokenRecord[] => db.prepare(SELECT_CHANGED).all(generation).map(tokenRecord),
  }
}

export function prepareTokenWrites(db: DatabaseSync) {
  const { find, generation, successorOf } = prepareTokenReads(db)

  function insert(token: NewToken): void {
    if (find(token.keyId)) throw new StoreFailure('rejected', `a token with key id ${token.keyId} exists already`)
    db.prepare(INSERT).run(...tokenValues(token))
  }

  function setActive(keyId: string, isActive: boolean, now: number): TokenRecord | null {
    db.prepare(SET_ACTIVE).run(isActive ? 1 : 0, isActive ? null : now, keyId)
    return find(keyId)
  }

  function rotate(successor: NewToken, oldExpiresAt: number | null, now: number): TokenRecord | null {
    const keyId = successor.rotatedFrom ?? ''
    if (!find(keyId)) return null
    if (successorOf(keyId) !== null) throw new StoreFailure('rejected', `token ${keyId} was rotated already`)
    insert(successor)
    if (oldExpiresAt === null) return setActive(keyId, false, now)
    db.prepare(SET_EXPIRY).run(oldExpiresAt, keyId)
    return find(keyId)
  }

  /** For a change that is kept beside the token: every node reads it again. */
  function advance(keyId: string): TokenRecord | null {
    db.prepare(ADVANCE).run(keyId)
    return find(keyId)
  }

  return {
    /** Inside of a transaction of the caller. */
    inside: { insert, rotate, advance },
    createFirst: (token: NewToken): boolean =>
      inTransaction(db, () => {
        if (generation() > 0) return false
        insert(token)
        return true
      }),
    create: (token: NewToken): void => inTransaction(db, () => insert(token)),
    setActive: (keyId: string, isActive: boolean, now: number): TokenRecord | null =>
      inTransaction(db, () => setActive(keyId, isActive, now)),
    setRateLimit: (keyId: string, rateLimit: TokenRecord['rateLimit']): TokenRecord | null =>
      inTransaction(db, () => {
        db.prepare(SET_RATE_LIMIT).run(rateLimit && formatRate(rateLimit), keyId)
        return find(keyId)
      }),
    rotate: (successor: NewToken, oldExpiresAt: number | null, now: number): TokenRecord | null =>
      inTransaction(db, () => rotate(successor, oldExpiresAt, now)),
    touch: (uses: readonly TokenUse[]): void =>
      inTransaction(db, () => {
        const touch = db.prepare(TOUCH)
        for (const use of uses) touch.run(use.usedAt, use.keyId)
      }),
  }
}
