// The schema on PostgreSQL: ready to be distributed by company, and brought up to date by whoever may.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMigrations } from '../../../src/store/migrations.ts'
import { openStore } from '../../../src/store/open.ts'
import { newPostgresDatabase, withClient } from '../../support/postgres/databases.ts'

const MIGRATIONS = readMigrations(new URL('../../../src/store/postgres/migrations/', import.meta.url))

async function migrated(): Promise<string> {
  const url = await newPostgresDatabase()
  await (await openStore(url, { role: 'tool' })).close()
  return url
}

/** They belong to the database and to no tenant. */
const OF_NO_TENANT = [
  'audit',
  'index_cursors',
  'meta',
  'nodes',
  'operators',
  'pen',
  'schema_migrations',
  'sessions',
  'sign_in_links',
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

/** A database as the version before this one left it. */
async function earlierDatabase(): Promise<string> {
  const url = await newPostgresDatabase()
  await withClient(url, async (client) => {
    await client.query(`CREATE SCHEMA intray; CREATE TABLE intray.schema_migrations (version integer PRIMARY KEY,
      name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL)`)
    for (const { version, name, checksum, sql } of MIGRATIONS.slice(0, -1)) {
      await client.query(sql)
      await client.query('INSERT INTO intray.schema_migrations VALUES ($1, $2, $3, 0)', [version, name, checksum])
    }
  })
  return url
}

test('a database of an earlier version is brought up to date, by a command only while no server runs', async (t) => {
  const url = await earlierDatabase()
  await withClient(url, (client) => client.query("INSERT INTO intray.nodes VALUES ('old-node', 0, clock_timestamp())"))
  await assert.rejects(openStore(url, { role: 'tool' }), { name: 'StoreRefused', message: /Update a server first/ })
  const server = await openStore(url, { role: 'server' })
  t.after(() => server.close())
  assert.equal(server.facts.schema_version, MIGRATIONS.length)
  const unserved = await openStore(await earlierDatabase(), { role: 'tool' })
  t.after(() => unserved.close())
  assert.equal(unserved.facts.schema_version, MIGRATIONS.length)
})
