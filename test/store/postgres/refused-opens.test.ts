// What cannot be opened is refused with a sentence for the operator: what is wrong, where, and what to do. Never with the
// password.

import assert from 'node:assert/strict'
import net from 'node:net'
import { test } from 'node:test'
import { StoreRefused } from '../../../src/store/contract/failure.ts'
import { openStore } from '../../../src/store/open.ts'
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

test('a port where nobody listens', async () => {
  const closed = net.createServer()
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
  const { port } = closed.address() as net.AddressInfo
  await new Promise((resolve) => closed.close(resolve))
  await isRefused(`postgres://intray@127.0.0.1:${port}/intray`, /cannot be reached at 127\.0\.0\.1:\d+: .*ECONNREFUSED/)
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
