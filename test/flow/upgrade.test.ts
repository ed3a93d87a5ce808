// Upgrades: a database that a release made is served by this version and by one with a further migration, with everything that it
// held; and no version opens what a newer one has migrated.

import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { readMigrations } from '../../src/store/migrations.ts'
import { parseAddress } from '../../src/store/postgres/connection/address.ts'
import { Connection } from '../../src/store/postgres/connection/connection.ts'
import { prepareSchema } from '../../src/store/postgres/schema.ts'
import { migrate } from '../../src/store/sqlite/schema.ts'
import { runToEnd } from '../support/command.ts'
import { newPostgresDatabase, withClient } from '../support/postgres/databases.ts'
import { LAUNCHER, startServer } from '../support/process.ts'
import { within } from '../support/until.ts'
import { readAnswers, readLists } from './releases/answers.ts'
import { FIRST } from './releases/fill.ts'
import { DATABASES, type DatabaseName, databaseOf, RELEASES, saidBy } from './releases/fixture.ts'
import { nextVersion } from './releases/next-version.ts'

type Row = Readonly<Record<string, unknown>>

/** What decides what a schema is: every object with its definition, in a fixed order. */
const SQLITE_SCHEMA = 'SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name'
const POSTGRES_SCHEMA = `
  SELECT 'column' AS type, table_name || '.' || column_name AS name,
    concat_ws(' ', ordinal_position, data_type, is_nullable, column_default, is_identity) AS sql
    FROM information_schema.columns WHERE table_schema = 'intray'
  UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'intray'
  UNION ALL SELECT 'constraint', conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'intray'::regnamespace AND contype <> 'n'
  UNION ALL SELECT 'options', relname, array_to_string(reloptions, ' ') FROM pg_class
    WHERE relnamespace = 'intray'::regnamespace AND relkind IN ('r', 'p', 'i')
  UNION ALL SELECT 'sequence', sequencename, concat_ws(' ', start_value, increment_by, cache_size, data_type)
    FROM pg_sequences WHERE schemaname = 'intray'
  UNION ALL SELECT 'trigger', tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc
    WHERE pronamespace = 'intray'::regnamespace
  ORDER BY 1, 2, 3`
const APPLIED = 'SELECT version, name, checksum FROM schema_migrations ORDER BY version'

async function rowsOf(url: string, sql: string): Promise<Row[]> {
  if (!url.startsWith('sqlite:'))
    return withClient(
      url,
      async (client) =>
        ((await client.query(`SET search_path = intray; ${sql}`)) as never as { rows: Row[] }[])[1]!.rows,
    )
  const db = new DatabaseSync(url.slice('sqlite:'.length))
  const rows = db.prepare(sql).all()
  db.close()
  return rows.map((row) => ({ ...row }))
}

const shipped = (database: DatabaseName) =>
  readMigrations(new URL(`../../src/store/${database}/migrations/`, import.meta.url))

/** The schema of a new database after so many migrations. */
async function newSchema(database: DatabaseName, migrations: number): Promise<Row[]> {
  const known = shipped(database).slice(0, migrations)
  if (database === 'sqlite') {
    const db = new DatabaseSync(':memory:')
    migrate(db, known)
    return db
      .prepare(SQLITE_SCHEMA)
      .all()
      .map((row) => ({ ...row }))
  }
  const url = await newPostgresDatabase()
  const connection = await Connection.open(parseAddress(url).hosts[0]!)
  await prepareSchema(connection, 'tool', { known })
  await connection.close()
  return rowsOf(url, POSTGRES_SCHEMA)
}

const WHAT_TO_DO = (release: string) =>
  `A migration that version ${release} was released with has changed. Bring back its file, and add a migration of its own for the change. ` +
  `As long as ${release} is not published, make its databases anew: node_modules/.bin/node test/flow/releases/make.ts`

async function serve(t: TestContext, launcher: string, url: string) {
  const env = { INTRAY_DATABASE_URL: url, INTRAY_CONSOLE: 'off' }
  const server = await startServer(t, env, [launcher, 'serve'])
  const run = (...args: string[]) => runToEnd([launcher, ...args], env)
  const stop = async () => {
    server.child.kill('SIGTERM')
    assert.equal(await within('the server to stop', server.exited), 0, server.stderr())
  }
  return { url: server.url, run, stop }
}

async function post(url: string, token: string, body: string): Promise<unknown> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  return (await fetch(`${url}/v1/inbox/events`, { method: 'POST', headers, body })).json()
}

const NEXT_MIGRATION = shipped('sqlite').length + 1
let launcherOfNext: string | null = null

for (const release of RELEASES) {
  for (const database of Object.keys(DATABASES) as DatabaseName[]) {
    describe(`the database of ${release} on ${database}`, () => {
      test('was made by the migrations of this version, and has the schema that they make', async () => {
        const url = await databaseOf(release, database)
        const applied = await rowsOf(url, APPLIED)
        const known = shipped(database).map(({ version, name, checksum }) => ({ version, name, checksum }))
        assert.ok(applied.length > 0)
        assert.deepEqual(known.slice(0, applied.length), applied, WHAT_TO_DO(release))
        const sql = database === 'sqlite' ? SQLITE_SCHEMA : POSTGRES_SCHEMA
        const schema = await newSchema(database, applied.length)
        assert.deepEqual(schema, await rowsOf(url, sql), WHAT_TO_DO(release))
        await rowsOf(url, 'ALTER TABLE events ADD COLUMN another TEXT')
        assert.notDeepEqual(schema, await rowsOf(url, sql), 'the control')
      })

      test('is served by this version and by the next one, which keep all of it, and is then refused by this one', async (t) => {
        const url = await databaseOf(release, database)
        const { tokens, answers, lists } = saidBy(release, database)
        const now = await serve(t, LAUNCHER, url)
        assert.deepEqual(await readAnswers(now.url, tokens), answers)
        await now.stop()

        launcherOfNext ??= nextVersion(NEXT_MIGRATION)
        const next = await serve(t, launcherOfNext, url)
        assert.deepEqual(await readAnswers(next.url, tokens), answers)
        const said = await readLists(async (...args) => (await next.run(...args)).stdout.toString())
        assert.deepEqual(said, lists)
        assert.deepEqual(await post(next.url, tokens.sender, FIRST), { ok: true, id: 1, duplicate: true })
        const added = (await post(next.url, tokens.sender, '{"source_ref":"after the upgrade"}')) as { id: number }
        const doctor = await next.run('doctor')
        // The PostgreSQL of tests does not sync.
        const wrong = doctor.stdout.toString().match(/^(?!ok |WRONG +syncs: |(?:No p|P)roblems found|$)\S.*/gm)
        assert.equal(wrong, null, doctor.stderr)
        await next.stop()

        const rows = await rowsOf(url, 'SELECT id, later FROM events ORDER BY id')
        assert.deepEqual(rows.at(-1), { id: database === 'sqlite' ? added.id : String(added.id), later: null })
        assert.deepEqual([...new Set(rows.slice(0, -1).map(({ later }) => later))], ['migrated'])
        for (const args of [['serve'], ['token', 'list']]) {
          const { code, stderr } = await runToEnd([LAUNCHER, ...args], { INTRAY_DATABASE_URL: url })
          const version = `has schema version ${NEXT_MIGRATION}, newer than the ${NEXT_MIGRATION - 1} this version`
          assert.deepEqual([code, stderr.includes(version)], [1, true], stderr)
        }
      })
    })
  }
}
