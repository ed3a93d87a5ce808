// Hooks on PostgreSQL. A hook and its token are written in one transaction, under the lock of tokens.

import type { HookRecord, StoredRecipe } from '../../../model/hook.ts'
import type { EventReader } from '../../contract/events.ts'
import type { HookStore } from '../../contract/hooks.ts'
import { EVENT_COLUMNS, type EventCells, storedEvent } from '../../event-columns.ts'
import { hookRecord, hookValues, recipeValues, storedRefusal } from '../../rows.ts'
import type { Connection, Statement } from '../connection/connection.ts'
import type { Pool } from '../connection/pool.ts'
import { REFUSAL_COLUMNS } from './refusals.ts'
import { advanceToken, changeTokens, insertToken, rotateToken } from './tokens.ts'

const INSERT = `INSERT INTO intray.hooks (key_id, company_id, account_id, max_body, first_key_id, sealed)
  VALUES ($1, $2, $3, $4, $5, $6)`
const INSERT_RECIPE = `INSERT INTO intray.recipes (company_id, account_id, digest, recipe, created_at)
  VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`
const COLUMNS = 'key_id, company_id, account_id, max_body, first_key_id, sealed'
const SELECT: Statement = { name: 'intray_hook', text: `SELECT ${COLUMNS} FROM intray.hooks WHERE key_id = $1` }
const SELECT_PAGE = `SELECT ${COLUMNS} FROM intray.hooks WHERE key_id > $1 ORDER BY key_id LIMIT $2`
const RESEAL = 'UPDATE intray.hooks SET sealed = $3 WHERE key_id = $1 AND sealed = $2'
const SELECT_RECIPE: Statement = {
  name: 'intray_recipe',
  text: 'SELECT recipe FROM intray.recipes WHERE company_id = $1 AND account_id = $2 AND digest = $3',
}
const SELECT_EVENTS: Statement = {
  name: 'intray_hook_events',
  text: `SELECT ${EVENT_COLUMNS} FROM intray.events
  WHERE key_id = $1 AND recipe IS NOT NULL AND company_id = $2 AND account_id = $3 ORDER BY id DESC LIMIT $4`,
}
const SELECT_REFUSALS = `SELECT ${REFUSAL_COLUMNS} FROM intray.refusals
  WHERE company_id = $1 AND account_id = $2 AND key_id = $3 ORDER BY id DESC LIMIT $4`

export function createHookStore(pool: Pool, events: Pick<EventReader, 'indexEntry'>): HookStore {
  return {
    create: ({ token, hook, recipe }) =>
      changeTokens(pool, async (connection) => {
        await insertToken(connection, token)
        await insertBeside(connection, hook, recipe)
      }),
    find: async (keyId) => {
      const [row] = await pool.lookUp((connection) => connection.query(SELECT, [keyId]))
      return row ? hookRecord(row) : null
    },
    list: async (afterKeyId, limit) =>
      (await pool.use((connection) => connection.query(SELECT_PAGE, [afterKeyId, limit]))).map(hookRecord),
    reseal: (keyId, was, sealed) =>
      changeTokens(pool, async (connection) =>
        (await connection.execute(RESEAL, [keyId, was, sealed])) === 0 ? null : advanceToken(connection, keyId),
      ),
    rotate: ({ token, hook, recipe }, oldExpiresAt, now) =>
      changeTokens(pool, async (connection) => {
        const old = await rotateToken(connection, token, oldExpiresAt, now)
        if (old) await insertBeside(connection, hook, recipe)
        return old
      }),
    keepRecipe: (recipe) =>
      pool.use(async (connection) => {
        await connection.query(INSERT_RECIPE, recipeValues(recipe))
      }),
    recipe: async ({ companyId, accountId }, digest) => {
      const [row] = await pool.lookUp((connection) => connection.query(SELECT_RECIPE, [companyId, accountId, digest]))
      return (row?.recipe as string | undefined) ?? null
    },
    deliveries: async ({ companyId, accountId }, keyId, limit) => {
      const cells = await pool.use((connection) =>
        connection.rows<EventCells>(SELECT_EVENTS, [keyId, companyId, accountId, limit]),
      )
      const refusals = await pool.use((connection) =>
        connection.query(SELECT_REFUSALS, [companyId, accountId, keyId, limit]),
      )
      const found = []
      for (const event of cells.map(storedEvent)) found.push({ event, entry: await events.indexEntry(event) })
      return { events: found, refusals: refusals.map(storedRefusal) }
    },
  }
}

async function insertBeside(connection: Connection, hook: HookRecord, recipe: StoredRecipe | null): Promise<void> {
  await connection.query(INSERT, hookValues(hook))
  if (recipe) await connection.query(INSERT_RECIPE, recipeValues(recipe))
}
