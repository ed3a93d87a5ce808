// Databases for tests. Every test file, which is a process, has a PostgreSQL server of its own: a transaction that is open in
// one database holds back the watermark of all databases of its server, so files on a shared server would delay each other.
// The server starts on first use, on a copy of the run's template cluster (40 ms for the copy, 35 ms for the start), and ends with the process.
// Each database is a copy of a database of that cluster: an empty one, or one that has our schema.

import { randomBytes, randomUUID } from 'node:crypto'
import pg from 'pg'
import { newUuid } from '../../../src/runtime/id.ts'
import { openStore } from '../../../src/store/open.ts'
import {
  createCluster,
  newPostgres,
  type PostgresServer,
  removeOnExit,
  startPostgres,
  TEMPLATE_VARIABLE,
} from './server.ts'

const MIGRATED = 'migrated'
/** What a database that was migrated by itself has for its own. */
const NEW_IDENTITY = `UPDATE intray.meta SET value = CASE key WHEN 'database_uuid' THEN $1::bytea ELSE $2::bytea END
  WHERE key IN ('database_uuid', 'dedupe_key')`

let own: Promise<PostgresServer> | null = null

/** For the global set-up: the servers of all test files then start on copies of this cluster. */
export async function createTemplateCluster(): Promise<void> {
  const folder = await createCluster()
  // With the default wal_level: a cluster that ran with less cannot become a standby.
  const server = await startPostgres(folder, { fsync: 'off' })
  await createMigrated(server)
  await server.stop()
  process.env[TEMPLATE_VARIABLE] = folder
}

/** The URL of a database of this file's server that did not exist before. */
export async function newPostgresDatabase(): Promise<string> {
  return copyOf('template1')
}

/** The same with the schema in place, in a third of the time. */
export async function newMigratedDatabase(): Promise<string> {
  const url = await copyOf(MIGRATED)
  await withClient(url, (client) => client.query(NEW_IDENTITY, [Buffer.from(newUuid()), randomBytes(32)]))
  return url
}

/** Where this file's server takes connections of those who make databases. */
export async function serverUrl(): Promise<string> {
  own ??= startOwnServer()
  return (await own).url('postgres')
}

/** Makes one more database on the server of this URL. */
export async function createDatabase(url: string, options = ''): Promise<string> {
  return createNamed(url, `test_${randomUUID().replaceAll('-', '')}`, options)
}

async function createNamed(url: string, name: string, options: string): Promise<string> {
  await withClient(url, (client) => client.query(`CREATE DATABASE ${name} ${options}`))
  return url.replace(/\/[^/]*$/, `/${name}`)
}

/** A copy of its files is 15 ms, through the log it is 40 ms. */
async function copyOf(template: string): Promise<string> {
  return createDatabase(await serverUrl(), `TEMPLATE ${template} STRATEGY file_copy`)
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

async function createMigrated(server: PostgresServer): Promise<void> {
  const store = await openStore(await createNamed(server.url('postgres'), MIGRATED, ''), { role: 'tool' })
  await store.close()
}

async function startOwnServer(): Promise<PostgresServer> {
  const server = await newPostgres()
  removeOnExit(server)
  if (process.env[TEMPLATE_VARIABLE] === undefined) await createMigrated(server)
  return server
}
