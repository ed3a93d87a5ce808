// The statement that lists tokens of all tenants in pages, for both drivers: the index by tenant gives the order, so a page costs its
// rows whatever stands before it.

import type { TokenKind, TokenQuery } from './contract/tokens.ts'
import { TOKEN_COLUMNS } from './rows.ts'

const PAGE_TOKENS = 500

/** True and false are the same words in both databases. */
const STATES = {
  active: (now: string) => `is_active AND (expires_at IS NULL OR expires_at > ${now})`,
  disabled: () => 'NOT is_active',
  expired: (now: string) => `is_active AND expires_at <= ${now}`,
}

/** Hooks are tokens with a recipe. */
export const OF_KIND: Readonly<Record<TokenKind, string>> = { token: 'recipe IS NULL', hook: 'recipe IS NOT NULL' }

/** `mark` begins a numbered parameter: ?1 in SQLite, $1 in PostgreSQL. */
export function tokenList(table: string, mark: '?' | '$', { filter, now = 0, after, limit = PAGE_TOKENS }: TokenQuery) {
  const values: (string | number)[] = []
  const place = (value: string | number) => `${mark}${values.push(value)}`
  const { accountId, companyId, scope, state, unusedSince, kind = 'token' } = filter ?? {}
  // Company ids begin with 1: this excludes none.
  const conditions = ['company_id > 0', OF_KIND[kind]]
  if (companyId !== undefined) conditions.push(`company_id = ${place(companyId)}`)
  if (accountId !== undefined) conditions.push(`account_id = ${place(accountId)}`)
  if (scope !== undefined) conditions.push(`scope = ${place(scope)}`)
  if (state !== undefined) conditions.push(STATES[state](state === 'disabled' ? '' : place(now)))
  if (unusedSince !== undefined) conditions.push(`coalesce(last_used_at, created_at) < ${place(unusedSince)}`)
  if (after) {
    const from = [after.companyId, after.accountId, after.createdAt, after.keyId].map(place).join(', ')
    conditions.push(`(company_id, account_id, created_at, key_id) > (${from})`)
  }
  const sql = `SELECT ${TOKEN_COLUMNS} FROM ${table} WHERE ${conditions.join(' AND ')}
    ORDER BY company_id, account_id, created_at, key_id LIMIT ${place(limit)} + 0`
  return { sql, values }
}
