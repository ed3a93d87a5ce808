// One tenant as it leaves a PostgreSQL database or comes into one, beside running servers.

import type { Tenant } from '../../../model/principal.ts'
import type { CopyTable } from '../../contract/copy.ts'
import { StoreRefused } from '../../contract/failure.ts'
import type { MovedIds, MoveState, TenantMove } from '../../contract/tenant-move.ts'
import { ANOTHER_MOVE, HAS_TENANT, isSameMove, NO_TENANT } from '../../copy-state.ts'
import { COPY_TABLES } from '../../copy-tables.ts'
import { bigints } from '../connection/binary-array.ts'
import type { Connection } from '../connection/connection.ts'
import { LOCKS } from '../connection/locks.ts'
import { readLastIds } from '../journal/watermark.ts'
import { insertRows, removeRows } from './copy-rows.ts'
import { type InTransaction, lockBriefly } from './copy-triggers.ts'

const STATE = 'tenant_move'
const OF_TENANT = 'company_id = $1 AND account_id = $2'
const SET_MOVED = `UPDATE intray.tokens SET moved_to = $3,
  generation = (SELECT coalesce(max(generation), 0) + 1 FROM intray.tokens) WHERE ${OF_TENANT}`
const HAS_TOKENS = `SELECT 1 FROM intray.tokens WHERE ${OF_TENANT} LIMIT 1`
const IS_MOVED = `SELECT 1 FROM intray.tokens WHERE ${OF_TENANT} AND moved_to IS NOT NULL LIMIT 1`
const CREATE_REFUSAL = `CREATE OR REPLACE FUNCTION intray.refuse_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the tenant has moved to another database';
END $$`
const CREATE_IDS = `CREATE TABLE intray.moved_ids (
  name text NOT NULL, old_id bigint NOT NULL, new_id bigint NOT NULL, PRIMARY KEY (name, old_id))`
const SELECT_IDS = 'SELECT name, old_id, new_id FROM intray.moved_ids'
const INSERT_IDS = `INSERT INTO intray.moved_ids (name, old_id, new_id)
  SELECT $1, unnest($2::bigint[]), unnest($3::bigint[])`
const INSERT_GAP = 'INSERT INTO intray.id_gaps (after_id, before_id, begun_at) VALUES ($1, $2, $3)'
const INSERT_TENANT_GAP = 'INSERT INTO intray.tenant_gaps (company_id, account_id, after_id) VALUES ($1, $2, $3)'
/** Ids that other nodes draw while the sequence jumps are below its end. */
const MARGIN = 1_000_000
const SEQUENCES: Record<string, string> = { events: 'event_ids', resends: 'resend_ids', refusals: 'refusal_ids' }

export function createTenantMove(transaction: InTransaction): TenantMove {
  /** Under the lock of tokens, as every change of them. */
  const changeTokens = <T>(work: (connection: Connection) => Promise<T>): Promise<T> =>
    transaction(async (connection) => {
      await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.tokens)
      return work(connection)
    })

  return {
    async close(tenant, address) {
      const { companyId, accountId } = tenant
      if (!(await transaction((connection) => has(connection, HAS_TOKENS, tenant)))) throw new StoreRefused(NO_TENANT)
      await lockBriefly(
        transaction,
        'so the tenant could not be closed',
        `${CREATE_REFUSAL}; CREATE OR REPLACE TRIGGER ${triggerOf(tenant)} BEFORE INSERT ON intray.events
        FOR EACH ROW WHEN (NEW.company_id = ${companyId} AND NEW.account_id = ${accountId})
        EXECUTE FUNCTION intray.refuse_moved()`,
      )
      await changeTokens((connection) => connection.query(SET_MOVED, [companyId, accountId, address ?? '']))
    },
    async reopen(tenant) {
      await lockBriefly(
        transaction,
        'so the tenant is still closed',
        `DROP TRIGGER IF EXISTS ${triggerOf(tenant)} ON intray.events`,
      )
      await changeTokens((connection) => connection.query(SET_MOVED, [tenant.companyId, tenant.accountId, null]))
    },
    isClosed: (tenant) => transaction((connection) => has(connection, IS_MOVED, tenant)),
    begin: (tenant, sourceUuid, last) =>
      transaction(async (connection) => {
        await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.copy)
        const state = await readState(connection)
        if (state && !isSameMove(state, tenant, sourceUuid)) throw new StoreRefused(ANOTHER_MOVE)
        if (await has(connection, HAS_TOKENS, tenant)) throw new StoreRefused(HAS_TENANT)
        if (!state) {
          await connection.script(CREATE_IDS)
          const { events } = await readLastIds(connection)
          const { companyId, accountId } = tenant
          const afterId = events <= last ? last + MARGIN : events
          if (events <= last) {
            await connection.query(`SELECT setval('intray.event_ids', $1)`, [afterId])
            await connection.query(INSERT_GAP, [events + MARGIN / 2, afterId, Date.now()])
          }
          await saveState(connection, { companyId, accountId, sourceUuid, afterId })
        }
        const moved = new Map<string, MovedIds>()
        for (const row of await connection.query<{ name: string; old_id: number; new_id: number }>(SELECT_IDS)) {
          const ids = moved.get(row.name) ?? new Map<number, number>()
          moved.set(row.name, ids.set(row.old_id, row.new_id))
        }
        return moved
      }),
    insertNumbered: (table, oldIds, rowsOf) =>
      transaction(async (connection) => {
        // The transaction takes its xid before it draws an id, as an append does (watermark.ts).
        await connection.query('SELECT pg_current_xact_id()')
        const ids = await draw(connection, table, oldIds.length)
        await insertRows(connection, table, rowsOf(ids))
        await connection.query(INSERT_IDS, [table.name, bigints(oldIds), bigints(ids)])
        return ids
      }),
    put: (table, rows) =>
      transaction(async (connection) => {
        await removeRows(connection, table, rows)
        await insertRows(connection, table, rows)
      }),
    finish: ({ companyId, accountId }, tokens) =>
      changeTokens(async (connection) => {
        const { afterId } = (await readState(connection))!
        await connection.query(INSERT_TENANT_GAP, [companyId, accountId, afterId])
        await insertRows(connection, COPY_TABLES.find(({ name }) => name === 'tokens')!, tokens)
        await connection.query(SET_MOVED, [companyId, accountId, null])
        await connection.script(`DROP TABLE intray.moved_ids; DELETE FROM intray.meta WHERE key = '${STATE}'`)
      }),
  }
}

async function draw(connection: Connection, { name }: CopyTable, count: number): Promise<number[]> {
  const sequence = SEQUENCES[name]
  if (sequence !== undefined) {
    const sql = `SELECT nextval('intray.${sequence}') AS id FROM generate_series(1, $1::int)`
    return (await connection.query<{ id: number }>(sql, [count])).map(({ id }) => id)
  }
  // Erasures have no sequence: their lock keeps ids in the order of commits.
  await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.erasures)
  const [row] = await connection.query<{ last: number }>(`SELECT coalesce(max(id), 0) AS last FROM intray.${name}`)
  return Array.from({ length: count }, (_, n) => row!.last + 1 + n)
}

const triggerOf = ({ companyId, accountId }: Tenant): string => `moved_${companyId}_${accountId}`

async function has(connection: Connection, sql: string, { companyId, accountId }: Tenant): Promise<boolean> {
  return (await connection.query(sql, [companyId, accountId])).length > 0
}

async function readState(connection: Connection): Promise<MoveState | null> {
  const [row] = await connection.query<{ value: Buffer }>('SELECT value FROM intray.meta WHERE key = $1', [STATE])
  return row ? (JSON.parse(row.value.toString()) as MoveState) : null
}

async function saveState(connection: Connection, state: MoveState): Promise<void> {
  const value = Buffer.from(JSON.stringify(state))
  await connection.query('INSERT INTO intray.meta (key, value) VALUES ($1, $2)', [STATE, value])
}
