// The back door of PostgreSQL: a connection of the test's own.

import { hash } from 'node:crypto'
import { withClient } from '../support/postgres/databases.ts'
import type { BackDoor } from './back-door.ts'
import { DELIVERY_COLUMNS, type DeliveryRow, LANE_COLUMNS, type LaneRow } from './lane-rows.ts'
import { countRefsIn, refCounts } from './ref-counts.ts'

const DERIVED = {
  event_index: 'company_id, account_id, event_id',
  conversations: 'company_id, account_id, channel_key',
  repeats: 'company_id, event_id',
  traffic: 'company_id, account_id, span, at, key_id',
} as const

export const postgresBackDoor: BackDoor = {
  dumpIndex: (url) =>
    withClient(url, async (client) => {
      const dump: Record<string, unknown[]> = {}
      for (const [table, key] of Object.entries(DERIVED)) {
        dump[table] = (await client.query(`SELECT * FROM intray.${table} ORDER BY ${key}`)).rows
      }
      const words = await client.query(
        'SELECT event_id, tsvector_to_array(words) AS words FROM intray.event_words ORDER BY event_id',
      )
      dump.event_words = words.rows.map((row) => ({ ...row, words: row.words.toSorted() }))
      dump.cursors = (
        await client.query('SELECT source, position, clearing FROM intray.index_cursors ORDER BY source')
      ).rows
      return dump
    }),
  countJournal: (url) =>
    withClient(url, async (client) => {
      const count = async (what: string) => Number((await client.query(`SELECT count(*) AS n FROM ${what}`)).rows[0].n)
      return {
        events: await count('intray.events'),
        resends: await count('intray.resends'),
        dedupe: await count('intray.dedupe'),
      }
    }),
  countRefs: (url) =>
    withClient(url, async (client) => refCounts((await client.query(countRefsIn('intray.events'))).rows[0])),
  dropDedupeKey: (url) =>
    withClient(url, async (client) => {
      await client.query('ALTER TABLE intray.dedupe DROP CONSTRAINT dedupe_pkey')
    }),
  replacePayload: (url, id, payload) => update(url, 'SET payload = $2 WHERE id = $1', [id, payload]),
  smugglePayload: (url, id, payload) =>
    update(url, 'SET payload = $2, size = $3, sha256 = $4 WHERE id = $1', [
      id,
      payload,
      payload.byteLength,
      hash('sha256', payload, 'buffer'),
    ]),
  deleteKey: (url, id) => run(url, 'DELETE FROM intray.dedupe WHERE event_id = $1', [id]),
  deleteEvent: (url, id) => run(url, 'DELETE FROM intray.events WHERE id = $1', [id]),
  refuseEvent: (url, sourceRef) =>
    run(url, `ALTER TABLE intray.events ADD CONSTRAINT refuse CHECK (source_ref IS DISTINCT FROM '${sourceRef}')`),
  refuseEntry: (url, contactName) =>
    run(
      url,
      `ALTER TABLE intray.event_index ADD CONSTRAINT refuse CHECK (contact_name IS DISTINCT FROM '${contactName}')`,
    ),
  refuseNothing: (url) =>
    run(
      url,
      `ALTER TABLE intray.events DROP CONSTRAINT IF EXISTS refuse;
      ALTER TABLE intray.event_index DROP CONSTRAINT IF EXISTS refuse`,
    ),
  dumpLanes: (url) =>
    withClient(url, async (client) => ({
      lanes: numbers<LaneRow>(await client.query(`SELECT ${LANE_COLUMNS} FROM intray.lanes`)),
      deliveries: numbers<DeliveryRow>(
        await client.query(`SELECT ${DELIVERY_COLUMNS} FROM intray.deliveries WHERE state IN ('pending', 'leased')`),
      ),
    })),
}

/** A bigint comes as text. */
function numbers<T>({ rows }: { readonly rows: readonly Record<string, unknown>[] }): T[] {
  const cell = (value: unknown) => (typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value)
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, cell(value)])) as T)
}

function run(url: string, text: string, values?: unknown[]): Promise<void> {
  return withClient(url, async (client) => {
    await client.query(text, values)
  })
}

function update(url: string, change: string, values: unknown[]): Promise<void> {
  return run(url, `UPDATE intray.events ${change}`, values)
}
