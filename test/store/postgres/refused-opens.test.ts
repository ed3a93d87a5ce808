// What cannot be opened is refused with a sentence for the operator: what is wrong, where, and what to do. Never with the
// password.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreRefused } from '../../../src/store/contract/failure.ts'
import { openStore } from '../../../src/store/open.ts'
import { requireSupportedServer } from '../../../src/store/postgres/connection/supported-server.ts'
import { newPostgresDatabase, withClient } from '../../support/postgres/databases.ts'

const ROLES = ['server', 'tool'] as const

async function isRefused(url: string, sentence: RegExp): Promise<void> {
  for (const role of ROLES) {
    await assert.rejects(openStore(url.replace('//intray@', '//intray:hunter2@'), { role }), (error) => {
      assert.ok(error instanceof StoreRefused, `not a StoreRefused: ${error}`)
      assert.match(error.message, sentence)
      assert.match(error.message, /\.$/)
      assert.doesNotMatch(error.message, /hunter2/)
      return true
    })
  }
}

/** The control: what is refused afterwards was fine before. */
async function isOpened(url: string): Promise<void> {
  for (const role of ROLES) await (await openStore(url, { role })).close()
}

test('a port where nobody listens', async () => {
  // Below those that systems give out: another test's server may take a port that was free a moment ago.
  await isRefused('postgres://intray@127.0.0.1:1/intray', /cannot be reached at 127\.0\.0\.1:\d+: .*ECONNREFUSED/)
})

test('two hosts, none of which answers: both are named', async () => {
  await isRefused('postgres://intray@127.0.0.1:1,127.0.0.1:2/intray', /127\.0\.0\.1:1.*127\.0\.0\.1:2/)
})

test('a database that is not there', async () => {
  const url = await newPostgresDatabase()
  await isRefused(url.replace(/test_\w+$/, 'nowhere'), /no database nowhere\. Create it/)
})

test('a user that is not let in', async () => {
  const url = await newPostgresDatabase()
  await isRefused(url.replace('intray@', 'nobody:hunter2@'), /refused the login: .*nobody.*INTRAY_DATABASE_URL/)
})

test('a user that may not create anything', async () => {
  const url = await newPostgresDatabase()
  await withClient(url, (client) => client.query(`CREATE ROLE guest_${new URL(url).pathname.slice(6)} LOGIN`))
  await isRefused(url.replace('intray@', `guest_${new URL(url).pathname.slice(6)}:hunter2@`), /may not create .* owner/)
})

test('an encoding that does not hold every text', async () => {
  const url = await newPostgresDatabase()
  const name = `${new URL(url).pathname.slice(1)}_ascii`
  await withClient(url, (client) =>
    client.query(`CREATE DATABASE ${name} ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0`),
  )
  await isRefused(url.replace(/test_\w+$/, name), /encoding SQL_ASCII.*UTF8/)
})

test('servers that only speak like PostgreSQL are told by what they call themselves', () => {
  const answers: [version: string, hasCitus: boolean, sentence: RegExp | null][] = [
    ['PostgreSQL 17.6 (Debian 17.6-1.pgdg13+1) on x86_64-pc-linux-gnu, compiled by gcc, 64-bit', false, null],
    ['PostgreSQL 16.4 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit', true, /Citus.*stored twice/],
    ['PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang, 64-bit', false, /YugabyteDB/],
    ['PostgreSQL 11.2-YB-2.20.1.3-b0 on x86_64-pc-linux-gnu, compiled by clang, 64-bit', false, /YugabyteDB/],
    ['CockroachDB CCL v23.2.5 (x86_64-pc-linux-gnu, built 2024/05/06, go1.21)', false, /CockroachDB/],
  ]
  for (const [version, hasCitus, sentence] of answers) {
    const name = { version_text: version, has_citus: hasCitus }
    if (sentence) assert.throws(() => requireSupportedServer(name), sentence)
    else requireSupportedServer(name)
  }
})

test('a database with the extension Citus', async () => {
  const url = await newPostgresDatabase()
  await isOpened(url)
  await withClient(url, (client) =>
    client.query(`SET allow_system_table_mods = on; INSERT INTO pg_extension
      (oid, extname, extowner, extnamespace, extrelocatable, extversion)
      SELECT 99999, 'citus', oid, 'public'::regnamespace, false, '13.0' FROM pg_roles WHERE rolname = current_user`),
  )
  await isRefused(url, /has the extension Citus, .*PostgreSQL 15 or newer/)
})

test('servers that call themselves CockroachDB and YugabyteDB', async () => {
  for (const [name, version] of [
    ['CockroachDB', 'CockroachDB CCL v23.2.5'],
    ['YugabyteDB', 'PostgreSQL 15.12-YB-2025.1.0.0-b0'],
  ]) {
    const url = await newPostgresDatabase()
    await withClient(url, (client) =>
      client.query(`CREATE SCHEMA other; CREATE FUNCTION other.version() RETURNS text LANGUAGE sql AS $$ SELECT '${version}' $$;
        ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = other, pg_catalog`),
    )
    await isRefused(url, new RegExp(`is ${name}, which lacks`))
  }
})

test('a database that is read only', async () => {
  const url = await newPostgresDatabase()
  const name = new URL(url).pathname.slice(1)
  await withClient(url, (client) => client.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`))
  await isRefused(url, /takes no writes: it is a standby, or read-only/)
})

test('a schema that belongs to another program, which is left as it is', async () => {
  const url = await newPostgresDatabase()
  await withClient(url, (client) => client.query('CREATE SCHEMA intray; CREATE TABLE intray.events (mine text)'))
  await isRefused(url, /belongs to another program/)
  const columns = await withClient(url, (client) => client.query('SELECT * FROM intray.events'))
  assert.deepEqual(
    columns.fields.map(({ name }) => name),
    ['mine'],
  )
})

test('a database that is ahead of this code', async () => {
  const url = await newPostgresDatabase()
  await (await openStore(url, { role: 'tool' })).close()
  await withClient(url, (client) =>
    client.query("INSERT INTO intray.schema_migrations VALUES (99, 'from_the_future', 'x', 0)"),
  )
  await isRefused(url, /schema version 99, newer than/)
})

test('a migration that was edited afterwards', async () => {
  const url = await newPostgresDatabase()
  await (await openStore(url, { role: 'tool' })).close()
  await withClient(url, (client) =>
    client.query("UPDATE intray.schema_migrations SET checksum = 'x' WHERE version = 1"),
  )
  await isRefused(url, /made by another commit of Intray/)
})
