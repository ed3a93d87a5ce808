// One tenant as it leaves a PostgreSQL database or comes into one, beside running servers.

import type { Tenant } from '../../../model/principal.ts'
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
import { bigints } from '../connection/binary-array.ts'
import type { Connection, Value } from '../connection/connection.ts'
import { MOVED_STATE } from '../connection/failure.ts'
import { LOCKS } from '../connection/locks.ts'
import { readLastIds } from '../journal/watermark.ts'
import { insertRows, removeRows } from './copy-rows.ts'
import { lockEndpoints, setEndpointsMoved } from './endpoint-removal.ts'
import { type InTransaction, lockBriefly } from './copy-triggers.ts'

const OF_TENANT = 'company_id = $1 AND account_id = $2'
const SET_MOVED = `UPDATE intray.tokens SET moved_to = $3,
  generation = (SELECT coalesce(max(generation), 0) + 1 FROM intray.tokens) WHERE ${OF_TENANT}`
const HAS_TOKENS = `SELECT 1 FROM intray.tokens WHERE ${OF_TENANT} LIMIT 1`
const IS_MOVED = `SELECT 1 FROM intray.tokens WHERE ${OF_TENANT} AND moved_to IS NOT NULL LIMIT 1`
const CREATE_REFUSAL = `CREATE OR REPLACE FUNCTION intray.refuse_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '${MOVED}' USING ERRCODE = '${MOVED_STATE}';
END $$`
const SELECT_START = `SELECT after_id AS id FROM intray.tenant_gaps WHERE ${OF_TENANT}`
const INSERT_START = `INSERT INTO intray.tenant_gaps (company_id, account_id, from_id, after_id) VALUES ($1, $2, $3, $4)`
const END_OF_SLICE = `SELECT max(id) AS id FROM (
  SELECT id FROM intray.#table WHERE id > $1 AND id <= $2 ORDER BY id LIMIT ${SURVEY_ROWS}) AS slice`
/** Each row by its id, however few rows the planner takes the table to have. */
const SURVEYS: Record<SurveyedTable, string> = {
  events: `SELECT id FROM (SELECT id, company_id, account_id FROM intray.events WHERE id > $3 AND id <= $4 ORDER BY id OFFSET 0) AS slice
    WHERE ${OF_TENANT} ORDER BY id`,
  resends: `SELECT id FROM (SELECT id, company_id, event_id FROM intray.resends WHERE id > $3 AND id <= $4 ORDER BY id OFFSET 0) AS slice
    CROSS JOIN LATERAL (SELECT account_id FROM intray.events e WHERE e.id = slice.event_id AND e.company_id = slice.company_id LIMIT 1) AS event
    WHERE ${OF_TENANT} ORDER BY id`,
}
/** Ids that other nodes may draw while the sequence jumps. */
const DRAWN_MEANWHILE = 100_000
const SEQUENCES: Record<string, string> = { events: 'event_ids', resends: 'resend_ids', refusals: 'refusal_ids' }
const SELECT_META = 'SELECT value FROM intray.meta WHERE key = $1'
const INSERT_META = 'INSERT INTO intray.meta (key, value) VALUES ($1, $2)'
const DELETE_META = 'DELETE FROM intray.meta WHERE key = $1'

export function createTenantMove(transaction: InTransaction): TenantMove {
  /** Under the lock of tokens, as every change of them. */
  const changeTokens = <T>(work: (connection: Connection) => Promise<T>): Promise<T> =>
    transaction(async (connection) => {
      await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.tokens)
      await lockEndpoints(connection)
      return work(connection)
    })
  const ids = (sql: string, values: readonly Value[]) => transaction((connection) => selectIds(connection, sql, values))
  const setMoved = (tenant: Tenant, to: string | null) =>
    changeTokens((connection) => markMoved(connection, tenant, to))

  return {
    state: (tenant) =>
      transaction(async (connection) => {
        if (!(await has(connection, HAS_TOKENS, tenant))) return null
        return (await has(connection, IS_MOVED, tenant)) ? 'closed' : 'open'
      }),
    close: (tenant, address) => setMoved(tenant, address ?? ''),
    // Waits for every append in progress: what is committed from here on is refused.
    seal: (tenant) =>
      lockBriefly(
        transaction,
        'so the tenant could not be closed',
        `${CREATE_REFUSAL}; CREATE OR REPLACE TRIGGER ${triggerOf(tenant)} BEFORE INSERT ON intray.events
        FOR EACH ROW WHEN (NEW.company_id = ${tenant.companyId} AND NEW.account_id = ${tenant.accountId})
        EXECUTE FUNCTION intray.refuse_moved()`,
      ),
    async reopen(tenant) {
      await lockBriefly(
        transaction,
        'so the tenant is still closed',
        `DROP TRIGGER IF EXISTS ${triggerOf(tenant)} ON intray.events`,
      )
      await setMoved(tenant, null)
    },
    survey: ({ companyId, accountId }, table, after, upTo) =>
      transaction(async (connection) => {
        const [last] = await selectIds(connection, END_OF_SLICE.replace('#table', table), [after, upTo])
        if (!last) return { ids: [], last: null }
        return { ids: await selectIds(connection, SURVEYS[table], [companyId, accountId, after, last]), last }
      }),

    begin: (tenant, sourceUuid, sourceLast) =>
      transaction(async (connection) => {
        await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.copy)
        if (await has(connection, HAS_TOKENS, tenant)) throw new StoreRefused(HAS_TENANT)
        const [source] = await connection.query<{ value: Buffer }>(SELECT_META, [metaKeyOf(tenant)])
        if (source && source.value.toString() !== sourceUuid) throw new StoreRefused(OTHER_SOURCE)
        const { companyId, accountId } = tenant
        if (source) return (await selectIds(connection, SELECT_START, [companyId, accountId]))[0]!
        await connection.script(`CREATE TABLE ${idsOf(tenant)} (
          name text NOT NULL, old_id bigint NOT NULL, new_id bigint, PRIMARY KEY (name, old_id))`)
        const { events } = await readLastIds(connection)
        const start = moveStart(events, sourceLast)
        // A sequence is set at once, so only beyond all that other nodes may draw meanwhile.
        const jumps = start > events + DRAWN_MEANWHILE
        if (jumps) await connection.query("SELECT setval('intray.event_ids', $1)", [start])
        await connection.query(INSERT_START, [companyId, accountId, jumps ? events + DRAWN_MEANWHILE : start, start])
        await connection.query(INSERT_META, [metaKeyOf(tenant), Buffer.from(sourceUuid)])
        return start
      }),
    noteIds: (tenant, table, oldIds) =>
      transaction(async (connection) => {
        const sql = `INSERT INTO ${idsOf(tenant)} (name, old_id) SELECT $1, unnest($2::bigint[]) ON CONFLICT DO NOTHING`
        await connection.query(sql, [table, bigints(oldIds)])
      }),
    lastNoted: async (tenant, table) =>
      (await ids(`SELECT max(old_id) AS id FROM ${idsOf(tenant)} WHERE name = $1`, [table]))[0]!,
    noted: (tenant, table, after, limit) =>
      ids(`SELECT old_id AS id FROM ${idsOf(tenant)} WHERE name = $1 AND old_id > $2 ORDER BY old_id LIMIT $3`, [
        table,
        after,
        limit,
      ]),
    newIds: (tenant, table, oldIds) =>
      transaction(async (connection) => {
        const sql = `SELECT found.* FROM unnest($3::bigint[]) AS k (old)
          CROSS JOIN LATERAL (SELECT old_id, new_id FROM ${idsOf(tenant)}
            WHERE name IN ($1, $2) AND old_id = k.old AND new_id IS NOT NULL LIMIT 1) AS found`
        const gone = table === 'events' ? 'gone' : table
        const rows = await connection.query<{ old_id: number; new_id: number }>(sql, [table, gone, bigints(oldIds)])
        return new Map(rows.map((row) => [row.old_id, row.new_id]))
      }),
    newestUpTo: async (tenant, old) =>
      (
        await ids(
          `SELECT new_id AS id FROM ${idsOf(tenant)} WHERE name = 'events' AND old_id <= $1 AND new_id IS NOT NULL
          ORDER BY old_id DESC LIMIT 1`,
          [old],
        )
      )[0] ?? 0,
    insertNumbered: (tenant, table, oldIds, rowsOf) =>
      transaction(async (connection) => {
        await insertRows(connection, table, rowsOf(await draw(connection, tenant, table.name, table.name, oldIds)))
      }),
    numberGone: (tenant, oldIds) =>
      transaction(async (connection) => {
        await draw(connection, tenant, 'gone', 'events', oldIds)
      }),
    put: (table, rows) =>
      transaction(async (connection) => {
        await removeRows(connection, table, rows)
        await insertRows(connection, table, rows)
      }),
    finish: (tenant, tokens) =>
      changeTokens(async (connection) => {
        await insertRows(connection, COPY_TABLES.find(({ name }) => name === 'tokens')!, tokens)
        await markMoved(connection, tenant, null)
        await connection.script(`DROP TABLE ${idsOf(tenant)}`)
        await connection.query(DELETE_META, [metaKeyOf(tenant)])
      }),
  }
}

async function markMoved(connection: Connection, tenant: Tenant, to: string | null): Promise<void> {
  await connection.query(SET_MOVED, [tenant.companyId, tenant.accountId, to])
  await setEndpointsMoved(connection, tenant, to !== null)
}

/** Inside a transaction of the caller. */
async function draw(
  connection: Connection,
  tenant: Tenant,
  name: string,
  table: string,
  oldIds: readonly number[],
): Promise<MovedIds> {
  // The transaction takes its xid before it draws an id, as an append does (watermark.ts).
  await connection.query('SELECT pg_current_xact_id()')
  const drawn = await nextIds(connection, table, oldIds.length)
  await connection.query(
    `INSERT INTO ${idsOf(tenant)} (name, old_id, new_id) SELECT $1, unnest($2::bigint[]), unnest($3::bigint[])
    ON CONFLICT (name, old_id) DO UPDATE SET new_id = excluded.new_id`,
    [name, bigints(oldIds), bigints(drawn)],
  )
  return new Map(oldIds.map((old, n) => [old, drawn[n]!]))
}

async function nextIds(connection: Connection, table: string, count: number): Promise<number[]> {
  const sequence = SEQUENCES[table]
  if (sequence !== undefined) {
    return selectIds(connection, `SELECT nextval('intray.${sequence}') AS id FROM generate_series(1, $1::int)`, [count])
  }
  // Erasures have no sequence: their lock keeps ids in the order of commits.
  await connection.query('SELECT pg_advisory_xact_lock($1, $2)', LOCKS.erasures)
  const [last] = await selectIds(connection, `SELECT coalesce(max(id), 0) AS id FROM intray.${table}`, [])
  return Array.from({ length: count }, (_, n) => last! + 1 + n)
}

const triggerOf = ({ companyId, accountId }: Tenant): string => `moved_${companyId}_${accountId}`
/** Which old id became which, until the move is finished. */
const idsOf = ({ companyId, accountId }: Tenant): string => `intray.moved_ids_${companyId}_${accountId}`
/** Its value is the source of an unfinished move. */
const metaKeyOf = ({ companyId, accountId }: Tenant): string => `tenant_move_${companyId}_${accountId}`

async function selectIds(connection: Connection, sql: string, values: readonly Value[]): Promise<number[]> {
  return (await connection.query<{ id: number | null }>(sql, values)).map(({ id }) => Number(id))
}

async function has(connection: Connection, sql: string, { companyId, accountId }: Tenant): Promise<boolean> {
  return (await connection.query(sql, [companyId, accountId])).length > 0
}
