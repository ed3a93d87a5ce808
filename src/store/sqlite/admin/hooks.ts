// Hooks on SQLite. A hook and its token are written in one transaction.

import type { DatabaseSync } from 'node:sqlite'
import type { HookDeliveries, HookRecord, StoredRecipe } from '../../../model/hook.ts'
import type { DefinitionOf } from '../../../model/payload-reading.ts'
import type { Tenant } from '../../../model/principal.ts'
import type { TokenRecord } from '../../../model/token.ts'
import type { NewHook } from '../../contract/hooks.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { hookRecord, hookValues, recipeValues, storedRefusal } from '../../rows.ts'
import { inTransaction } from '../connection.ts'
import { prepareEventReads } from '../journal/events.ts'
import { REFUSAL_COLUMNS } from './refusals.ts'
import { prepareTokenWrites } from './tokens.ts'

const INSERT = `INSERT INTO hooks (key_id, company_id, account_id, max_body, first_key_id, sealed)
  VALUES (?, ?, ?, ?, ?, ?)`
const INSERT_RECIPE = `INSERT OR IGNORE INTO recipes (company_id, account_id, digest, recipe, created_at)
  VALUES (?, ?, ?, ?, ?)`
const COLUMNS = 'key_id, company_id, account_id, max_body, first_key_id, sealed'
const SELECT = `SELECT ${COLUMNS} FROM hooks WHERE key_id = ?`
const SELECT_PAGE = `SELECT ${COLUMNS} FROM hooks WHERE key_id > ? ORDER BY key_id LIMIT ? + 0`
const RESEAL = 'UPDATE hooks SET sealed = ? WHERE key_id = ? AND sealed = ?'
const SELECT_RECIPE = 'SELECT recipe FROM recipes WHERE company_id = ? AND account_id = ? AND digest = ?'
const SELECT_EVENTS = `SELECT ${EVENT_COLUMNS} FROM events INDEXED BY events_by_hook
  WHERE key_id = ? AND recipe IS NOT NULL AND company_id = ? AND account_id = ? ORDER BY id DESC LIMIT ? + 0`
const SELECT_REFUSALS = `SELECT ${REFUSAL_COLUMNS} FROM refusals INDEXED BY refusals_by_key
  WHERE company_id = ? AND account_id = ? AND key_id = ? ORDER BY id DESC LIMIT ? + 0`

export function prepareHookReads(db: DatabaseSync, dedupeKey: Uint8Array) {
  const events = prepareEventReads(db, dedupeKey)
  return {
    list: (afterKeyId: string, limit: number): HookRecord[] =>
      db.prepare(SELECT_PAGE).all(afterKeyId, limit).map(hookRecord),
    recipe: prepareDefinitionOf(db),
    deliveries({ companyId, accountId }: Tenant, keyId: string, limit: number): HookDeliveries {
      const select = db.prepare(SELECT_EVENTS)
      select.setReturnArrays(true)
      const found = select.all(keyId, companyId, accountId, limit) as unknown as EventCells[]
      const refusals = db.prepare(SELECT_REFUSALS).all(companyId, accountId, keyId, limit)
      return {
        events: found.map(storedEvent).map((event) => ({ event, entry: events.indexEntry(event) })),
        refusals: refusals.map(storedRefusal),
      }
    },
  }
}

export function prepareDefinitionOf(db: DatabaseSync): DefinitionOf {
  const select = db.prepare(SELECT_RECIPE)
  return ({ companyId, accountId }, digest) =>
    (select.get(companyId, accountId, digest)?.recipe as string | undefined) ?? null
}

export function findHook(db: DatabaseSync, keyId: string): HookRecord | null {
  const row = db.prepare(SELECT).get(keyId)
  return row ? hookRecord(row) : null
}

export function prepareHookWrites(db: DatabaseSync) {
  const tokens = prepareTokenWrites(db).inside

  function insertBeside(hook: HookRecord, recipe: StoredRecipe | null): void {
    db.prepare(INSERT).run(...hookValues(hook))
    if (recipe) db.prepare(INSERT_RECIPE).run(...recipeValues(recipe))
  }

  return {
    keepRecipe: (recipe: StoredRecipe): void => {
      db.prepare(INSERT_RECIPE).run(...recipeValues(recipe))
    },
    create: ({ token, hook, recipe }: NewHook): void =>
      inTransaction(db, () => {
        tokens.insert(token)
        insertBeside(hook, recipe)
      }),
    reseal: (keyId: string, was: Uint8Array, sealed: Uint8Array): TokenRecord | null =>
      inTransaction(db, () =>
        db.prepare(RESEAL).run(sealed, keyId, was).changes === 0 ? null : tokens.advance(keyId),
      ),
    rotate: ({ token, hook, recipe }: NewHook, oldExpiresAt: number | null, now: number): TokenRecord | null =>
      inTransaction(db, () => {
        const old = tokens.rotate(token, oldExpiresAt, now)
        if (old) insertBeside(hook, recipe)
        return old
      }),
  }
}
