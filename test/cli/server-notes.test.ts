// A command in another folder than the server: it is told of the server, and uses no database that it was not given.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runToEnd } from '../support/command.ts'
import { newPostgresDatabase } from '../support/postgres/databases.ts'
import { LAUNCHER, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { within } from '../support/until.ts'

test('a command that finds no database names the servers of this user, and takes none of their databases', async (t) => {
  const state = tempFolder('notes')
  const notes = join(state, 'intray', 'servers')
  const database = `sqlite:${join(tempFolder('served'), 'intray.db')}`
  const elsewhere = tempFolder('elsewhere')
  const list = (env: Record<string, string> = {}) =>
    runToEnd([LAUNCHER, 'token', 'list'], { XDG_STATE_HOME: state, ...env }, { cwd: elsewhere })
  const serve = () => startServer(t, { INTRAY_DATABASE_URL: database, XDG_STATE_HOME: state, INTRAY_CONSOLE: 'off' })

  const server = await serve()
  const told = await list()
  assert.equal(told.code, 2)
  assert.match(told.stderr, /^intray: There is no database at /)
  const hint = `The server on ${server.url} uses another database. For that one: INTRAY_DATABASE_URL=${database}\n`
  assert.ok(told.stderr.endsWith(hint), told.stderr)
  assert.deepEqual(readdirSync(elsewhere), [])
  const followed = await list({ INTRAY_DATABASE_URL: database })
  assert.deepEqual([followed.code, followed.databases], [0, [database]])

  const [name] = readdirSync(notes)
  const path = join(notes, name!)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const note = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
  writeFileSync(path, JSON.stringify({ ...note, started: 'another time' }))
  assert.match((await list()).stderr, /No server of this user runs here/, 'another process has the pid now')
  writeFileSync(path, 'half of a no')
  assert.match((await list()).stderr, /No server of this user runs here/)
  writeFileSync(path, JSON.stringify({ ...note, database: undefined }))
  assert.match((await list()).stderr, /No server of this user runs here/)
  writeFileSync(path, JSON.stringify(note))
  assert.ok((await list()).stderr.endsWith(hint), 'control: the note as it was')

  server.child.kill('SIGTERM')
  assert.equal(await within('the server to end', server.exited), 0)
  assert.deepEqual(readdirSync(notes), [], 'a server that stops takes its note along')

  const killed = await serve()
  killed.child.kill('SIGKILL')
  await within('the server to end', killed.exited)
  assert.equal(readdirSync(notes).length, 1, 'control: one that is killed cannot')
  assert.match((await list()).stderr, /No server of this user runs here/)
  const next = await serve()
  assert.deepEqual(readdirSync(notes), [`${next.child.pid}.json`], 'the next start removes it')
})

test('a note holds no password, and a server starts where none can be left', async (t) => {
  const state = tempFolder('notes')
  const url = await newPostgresDatabase()
  const secret = url.replace(/^(postgres(?:ql)?:\/\/)(?:([^:@/]*)(?::[^@/]*)?@)?/, '$1$2:s3cret@')
  assert.match(secret, /:s3cret@/)
  await startServer(t, { INTRAY_DATABASE_URL: secret, XDG_STATE_HOME: state, INTRAY_CONSOLE: 'off' })
  const [name] = readdirSync(join(state, 'intray', 'servers'))
  const note = readFileSync(join(state, 'intray', 'servers', name!), 'utf8')
  assert.match(note, /"database":"postgres/)
  assert.doesNotMatch(note, /s3cret/)
  const told = await runToEnd([LAUNCHER, 'token', 'list'], { XDG_STATE_HOME: state }, { cwd: tempFolder('elsewhere') })
  assert.match(
    told.stderr,
    /For that one: INTRAY_DATABASE_URL=postgres:\S+ \(with its password and parameters, which are left out here\)$/m,
  )

  const file = join(tempFolder('no-folder'), 'file')
  writeFileSync(file, '')
  for (const XDG_STATE_HOME of [file, '/proc/none']) {
    const env = { INTRAY_DATABASE_URL: `sqlite:${join(tempFolder('served'), 'intray.db')}`, INTRAY_CONSOLE: 'off' }
    const server = await startServer(t, { ...env, XDG_STATE_HOME })
    assert.equal((await fetch(`${server.url}/livez`)).status, 200)
  }
})
