// Makes the databases of this release: node_modules/.bin/node test/flow/releases/make.ts
// Packs the checkout, installs the package, and lets it make a database on SQLite and one on Debian's PostgreSQL.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { VERSION } from '../../../src/runtime/version.ts'
import { runToEnd } from '../../support/command.ts'
import { installIntray, packIntray } from '../../support/npm-package.ts'
import { programs, WITHOUT_PROGRAMS } from '../../support/postgres/debian.ts'
import { newPostgres, type PostgresServer } from '../../support/postgres/server.ts'
import { startServer } from '../../support/process.ts'
import { tempFolder } from '../../support/temp.ts'
import { within } from '../../support/until.ts'
import { readAnswers, readLists } from './answers.ts'
import { fill } from './fill.ts'
import { type DatabaseName, keep, type Said, wholeFile } from './fixture.ts'

/** Of the program that dumps, for psql and for servers of its own version. */
const NOT_FOR_ALL = /^(\\(un)?restrict .*|SET transaction_timeout = .*)\n/gm

if (programs === null) throw new Error(WITHOUT_PROGRAMS)

async function make(
  intray: string,
  database: DatabaseName,
  databaseUrl: string,
  read: () => Uint8Array,
): Promise<void> {
  const ends: (() => unknown)[] = []
  const context = { after: (end: () => unknown) => ends.push(end) } as unknown as TestContext
  const env = { INTRAY_DATABASE_URL: databaseUrl }
  const server = await startServer(context, env, [intray, 'serve'])
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await runToEnd([intray, ...args], env)
    if (code !== 0) throw new Error(`intray ${args.join(' ')}: ${stderr}`)
    return stdout.toString()
  }
  const command = async (...args: string[]) => JSON.parse(await run(...args, '--json')) as Record<string, unknown>
  try {
    const tokens = await fill({ url: server.url, command })
    const answers = await readAnswers(server.url, tokens)
    server.child.kill('SIGTERM')
    await within('the server to stop', server.exited)
    const said: Said = { tokens, answers, lists: await readLists(run) }
    keep(VERSION, database, read(), said)
    console.log(`${database}: ${Object.keys(answers).length} answers`)
  } finally {
    for (const end of ends) await end()
  }
}

function dump(server: PostgresServer): Uint8Array {
  const options = ['--inserts', '--no-owner', '--no-privileges', '--schema=intray']
  const sql = execFileSync(join(programs!, 'pg_dump'), [...options, server.url('postgres')], { maxBuffer: 10_000_000 })
  return Buffer.from(sql.toString().replace(NOT_FOR_ALL, ''))
}

const { tarball } = await packIntray()
const { intray } = await installIntray(tarball, process.execPath)
const path = join(tempFolder('made'), 'intray.db')
await make(intray, 'sqlite', `sqlite:${path}`, () => wholeFile(path))
const server = await newPostgres()
try {
  await make(intray, 'postgres', server.url('postgres'), () => dump(server))
} finally {
  await server.stop()
}
