// The schema on PostgreSQL: ready to be distributed by company, and brought up to date by whoever may.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Migration, readMigrations } from '../../../src/store/migrations.ts'
import { openStore } from '../../../src/store/open.ts'
import { parseAddress } from '../../../src/store/postgres/connection/address.ts'
import { Connection } from '../../../src/store/postgres/connection/connection.ts'
import { prepareSchema } from '../../../src/store/postgres/schema.ts'
import { newPostgresDatabase, withClient } from '../../support/postgres/databases.ts'

const SHIPPED = readMigrations(new URL('../../../src/store/postgres/migrations/', import.meta.url))

async function migrated(): Promise<string> {
  const url = await newPostgresDatabase()
  await (await openStore(url, { role: 'tool' })).close()
  return url
}

/** They belong to the database and to no tenant. */
const OF_NO_TENANT = [
  'audit',
  'id_gaps',
  'index_cursors',
  'meta',
  'nodes',
  'operators',
  'schema_migrations',
  'sessions',
  'sign_in_links',
  'unreadable',
]

test('company_id is part of every primary key and unique index of what belongs to a tenant', async () => {
  const { rows } = await withClient(await migrated(), (client) =>
    client.query(`SELECT c.relname AS table, i.indexrelid::regclass::text AS index,
        EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = i.indexrelid AND a.attname = 'company_id') AS has_company
      FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
      WHERE c.relnamespace = 'intray'::regnamespace AND i.indisunique ORDER BY 1, 2`),
  )
  assert.ok(rows.length > 8)
  const without = rows.filter((row) => !row.has_company).map((row) => row.table as string)
  assert.deepEqual([...new Set(without)], OF_NO_TENANT)
})

test('nothing refers across tables, and ids are given out one by one', async () => {
  const url = await migrated()
  const { constraints, cached } = await withClient(url, async (client) => ({
    constraints: await client.query("SELECT conname FROM pg_constraint WHERE contype = 'f'"),
    cached: await client.query("SELECT sequencename FROM pg_sequences WHERE schemaname = 'intray' AND cache_size <> 1"),
  }))
  assert.deepEqual(constraints.rows, [])
  assert.deepEqual(cached.rows, [])
})

const LATER: Migration = {
  version: SHIPPED.length + 1,
  name: 'later',
  checksum: 'later',
  sql: 'ALTER TABLE intray.events ADD COLUMN added text',
}

/** Alive for as long as the test takes: a sign of life counts for 4 s. */
const OLD_NODE = "INSERT INTO intray.nodes VALUES ('old-node', 0, clock_timestamp() + interval '1 hour')"

test('a later version brings the schema up to date, by a command only while no server runs', async (t) => {
  const url = await migrated()
  const connection = await Connection.open(parseAddress(url).hosts[0]!)
  t.after(() => connection.close())
  await connection.query(OLD_NODE)
  const known = [...SHIPPED, LATER]
  await assert.rejects(prepareSchema(connection, 'tool', { known }), {
    name: 'StoreRefused',
    message: /Update a server first/,
  })
  await connection.query('DELETE FROM intray.nodes')
  assert.equal(await prepareSchema(connection, 'tool', { known }), known.length)
  await connection.query('SELECT added FROM intray.events')
  await assert.rejects(openStore(url, { role: 'server' }), { name: 'StoreRefused', message: /newer/ })
})

test('servers of a later version that start at once migrate once, whoever else runs', async (t) => {
  const url = await migrated()
  const host = parseAddress(url).hosts[0]!
  const connections = await Promise.all([Connection.open(host), Connection.open(host), Connection.open(host)])
  t.after(() => Promise.all(connections.map((connection) => connection.close())))
  await connections[0].query(OLD_NODE)
  await Promise.all(
    connections.map((connection) => prepareSchema(connection, 'server', { known: [...SHIPPED, LATER] })),
  )
  const applied = await connections[0].query('SELECT name FROM intray.schema_migrations ORDER BY version')
  assert.deepEqual(applied, [{ name: 'schema' }, { name: 'later' }])
})

test('a database whose schema is that of another commit is refused', async () => {
  const url = await migrated()
  await withClient(url, (client) => client.query("UPDATE intray.schema_migrations SET checksum = 'other'"))
  for (const role of ['server', 'tool'] as const) {
    await assert.rejects(openStore(url, { role }), {
      name: 'StoreRefused',
      message: /made by another commit of Intray/,
    })
  }
})
