// Databases for tests: one server for the whole run (its address is in the environment), or, when a test file is run
// alone, one for that process. Each database is a copy of an empty template.

import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import pg from 'pg'
import { newPostgres, type PostgresServer } from './server.ts'

const VARIABLE = 'TEST_POSTGRES_URL'

let own: Promise<PostgresServer> | null = null

/** For the global set-up: every test process then uses this server. */
export async function startSharedPostgres(): Promise<PostgresServer> {
  const server = await newPostgres()
  process.env[VARIABLE] = server.url('postgres')
  return server
}

/** The URL of a database of the run's server that did not exist before. */
export async function newPostgresDatabase(): Promise<string> {
  const url = process.env[VARIABLE] ?? (await ownServer()).url('postgres')
  return createDatabase(url)
}

/** Makes one more database on the server of this URL. */
export async function createDatabase(url: string): Promise<string> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await withClient(url, (client) => client.query(`CREATE DATABASE ${name}`))
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

function ownServer(): Promise<PostgresServer> {
  own ??= newPostgres().then((server) => {
    process.once('exit', () => rmSync(dirname(server.dataFolder), { recursive: true, force: true }))
    return server
  })
  return own
}
