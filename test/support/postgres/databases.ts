// Databases for tests: one server for the whole run (its address is in the environment), or, when a test file is run
// alone, one for that process. Each database is a copy of a template: an empty one, or one with our schema in it, which is
// migrated once for the whole run.

import { randomBytes, randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import pg from 'pg'
import { newUuid } from '../../../src/runtime/id.ts'
import { openStore } from '../../../src/store/open.ts'
import { newPostgres, type PostgresServer } from './server.ts'

const VARIABLE = 'TEST_POSTGRES_URL'
const MIGRATED = 'migrated'
/** What a database that was migrated by itself has for its own. */
const NEW_IDENTITY = `UPDATE intray.meta SET value = CASE key WHEN 'database_uuid' THEN $1::bytea ELSE $2::bytea END
  WHERE key IN ('database_uuid', 'dedupe_key')`

let own: Promise<PostgresServer> | null = null

/** For the global set-up: every test process then uses this server. */
export async function startSharedPostgres(): Promise<PostgresServer> {
  const server = await startTestServer()
  process.env[VARIABLE] = server.url('postgres')
  return server
}

/** The URL of a database of the run's server that did not exist before. */
export async function newPostgresDatabase(): Promise<string> {
  return createDatabase(await serverUrl())
}

/** The same with the schema in place, at a third of the time. */
export async function newMigratedDatabase(): Promise<string> {
  const url = await createDatabase(await serverUrl(), MIGRATED)
  await withClient(url, (client) => client.query(NEW_IDENTITY, [Buffer.from(newUuid()), randomBytes(32)]))
  return url
}

/** Makes one more database on the server of this URL. */
export async function createDatabase(url: string, template = 'template1'): Promise<string> {
  return createNamed(url, `test_${randomUUID().replaceAll('-', '')}`, template)
}

async function createNamed(url: string, name: string, template: string): Promise<string> {
  await withClient(url, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`))
  return url.replace(/\/[^/]*$/, `/${name}`)
}

/** A connection of the test's own, closed again whatever happens. */
export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect(url)
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** A server with the template that is migrated. */
async function startTestServer(): Promise<PostgresServer> {
  const server = await newPostgres()
  const store = await openStore(await createNamed(server.url('postgres'), MIGRATED, 'template1'), { role: 'tool' })
  await store.close()
  return server
}

async function serverUrl(): Promise<string> {
  return process.env[VARIABLE] ?? (await ownServer()).url('postgres')
}

function ownServer(): Promise<PostgresServer> {
  own ??= startTestServer().then((server) => {
    process.once('exit', () => rmSync(dirname(server.dataFolder), { recursive: true, force: true }))
    return server
  })
  return own
}
