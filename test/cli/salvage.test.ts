// Damaged pages, from end to end on SQLite: the server stays up, doctor names what is damaged, and salvage copies the rest.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { indexPath } from '../../src/store/sqlite/index/index-file.ts'
import { item, TENANT } from '../store/rows.ts'
import { overwritePage, pagesOf, unreadableIds } from '../store/sqlite/damaged-pages.ts'
import { indexAll, outcomesOf } from '../store/suite.ts'
import { runToEnd } from '../support/command.ts'
import { withStore } from '../support/journal.ts'
import { LAUNCHER, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

// As of the service, so that its databases are closed to other users.
process.umask(0o077)

const EVENTS = 300

const message = (at: number) =>
  item({
    sourceRef: `ref-${at}`,
    channelRef: `page-${at % 10}`,
    body: { source_ref: `ref-${at}`, channel_ref: `page-${at % 10}`, rest: 'x'.repeat(at % 50 === 0 ? 9000 : 200) },
  })

async function newDatabase(): Promise<string> {
  const path = join(tempFolder('salvage'), 'intray.db')
  await withStore(`sqlite:${path}`, async (store) => {
    await store.journal.append(Array.from({ length: EVENTS }, (_, at) => message(at)))
    await indexAll(store)
  })
  return path
}

interface Check {
  readonly name: string
  readonly verdict: string
  readonly summary: string
  readonly advice?: string
}

async function examine(path: string) {
  const { code, stdout } = await runToEnd([LAUNCHER, 'doctor', '--json'], { INTRAY_DATABASE_URL: `sqlite:${path}` })
  const { checks } = JSON.parse(stdout.toString()) as { checks: Check[] }
  return { code, of: (name: string) => checks.find((check) => check.name === name), checks }
}

async function salvage(path: string, to: string, ...flags: string[]) {
  return runToEnd([LAUNCHER, 'salvage', '--to', to, ...flags], { INTRAY_DATABASE_URL: `sqlite:${path}` })
}

interface Salvaged {
  readonly complete: boolean
  readonly lost_messages: number[]
  readonly keys_made: number
  readonly tables: { table: string; rows: number; missing: string[] }[]
}

test('control: of a database that is whole nothing is missing, and every table is equal', async () => {
  const path = await newDatabase()
  const to = `${path}.copy.db`
  const { code, stdout, stderr } = await salvage(path, to)
  assert.equal(code, 0, stderr)
  assert.match(stdout.toString(), /Nothing is missing: every table is equal to its source\./)
  assert.deepEqual(
    (await examine(to)).checks.filter(({ verdict }) => verdict === 'wrong'),
    [],
  )
  const again = await salvage(path, to)
  assert.equal(again.code, 1)
  assert.match(again.stderr, /exists\. A salvage overwrites nothing/)
})

test('damaged pages of journal and index: doctor names them, and salvage copies every other row', async () => {
  const path = await newDatabase()
  const before = readFileSync(path)
  overwritePage(path, pagesOf(path, { table: 'events', type: 'leaf' })[20]!)
  overwritePage(path, pagesOf(path, { table: 'events', type: 'overflow' })[6]!)
  overwritePage(path, pagesOf(path, { table: 'dedupe', type: 'leaf' })[1]!)
  overwritePage(indexPath(path), pagesOf(indexPath(path), { table: 'event_index', type: 'leaf' })[1]!)
  const lost = unreadableIds(path, 'events', EVENTS)
  assert.ok(lost.length >= 2 && lost.length < 20, `injected: ${lost}`)
  assert.notDeepEqual(readFileSync(path), before)

  const { code, of } = await examine(path)
  assert.equal(code, 1)
  assert.match(of('structure')?.summary ?? '', /intray\.db is damaged in .*(events|dedupe)/)
  assert.match(of('index structure')?.summary ?? '', /intray\.index\.db is damaged in event_index/)
  assert.match(of('index structure')?.advice ?? '', /\.\/intray reindex/)
  assert.match(of('rows')?.summary ?? '', new RegExp(`dedupe: .*events: id ${lost[0]} `))
  assert.match(of('rows')?.advice ?? '', /\.\/intray salvage --to \S+intray\.salvaged\.db /)
  for (const name of ['payloads', 'references', 'backups']) assert.ok(of(name), `${name} speaks too`)

  const to = join(tempFolder('salvaged'), 'intray.db')
  const { code: ended, stdout, stderr } = await salvage(path, to, '--json')
  assert.equal(ended, 3, stderr)
  const found = JSON.parse(stdout.toString()) as Salvaged
  const rowsOf = (name: string) => found.tables.find(({ table }) => table === name)!
  assert.equal(found.complete, false)
  assert.equal(rowsOf('events').rows, EVENTS - lost.length)
  assert.ok(rowsOf('events').missing.length > 0 && rowsOf('dedupe').missing.length > 0)
  assert.ok(found.keys_made > 0)
  assert.ok(found.lost_messages.every((id) => lost.includes(id)))
  assert.equal(existsSync(`${to}.part`), false)
  const after = await examine(to)
  assert.deepEqual(
    after.checks.filter(({ verdict }) => verdict === 'wrong'),
    [],
  )

  await withStore(`sqlite:${to}`, async (store) => {
    await indexAll(store)
    assert.equal((await store.inbox.events(TENANT, {}, null, EVENTS)).events.length, EVENTS - lost.length)
    const again = await store.journal.append(Array.from({ length: EVENTS }, (_, at) => message(at)))
    const stored = outcomesOf(again).filter((outcome) => outcome === 'stored')
    assert.equal(stored.length, lost.length, 'what was lost is stored again, and nothing twice')
  })
})

test('a page of dedupe keys that looks intact and is another one: doctor counts the events, and salvage makes their keys', async () => {
  const path = await newDatabase()
  const [first, second] = pagesOf(path, { table: 'dedupe', type: 'leaf' })
  overwritePage(path, second!, first!)
  const { code, of } = await examine(path)
  assert.equal(code, 1)
  assert.match(of('keys')?.summary ?? '', /^\d+ events are not found by their dedupe key/)
  const to = join(tempFolder('salvaged'), 'intray.db')
  const { code: ended, stdout, stderr } = await salvage(path, to, '--json')
  assert.equal(ended, 3, stderr)
  const found = JSON.parse(stdout.toString()) as Salvaged
  assert.ok(found.keys_made > 0, 'what was injected')
  assert.deepEqual(found.lost_messages, [])
  await withStore(`sqlite:${to}`, async (store) => {
    const again = await store.journal.append(Array.from({ length: EVENTS }, (_, at) => message(at)))
    assert.deepEqual(new Set(outcomesOf(again)), new Set(['duplicate']))
  })
})

test('a server on damaged pages of journal and index stays up and takes messages; reindex and restart work', async (t) => {
  const path = await newDatabase()
  overwritePage(path, pagesOf(path, { table: 'events', type: 'leaf' })[20]!)
  for (const page of pagesOf(indexPath(path), { table: 'event_index', type: 'leaf' }))
    overwritePage(indexPath(path), page)
  const lost = unreadableIds(path, 'events', EVENTS)
  assert.ok(lost.length > 0)
  const env = { INTRAY_DATABASE_URL: `sqlite:${path}` }
  const created = await runToEnd([LAUNCHER, 'token', 'create', '--account', '1', '--company', '1', '--json'], env)
  assert.equal(created.code, 0, created.stderr)
  const { token } = JSON.parse(created.stdout.toString()) as { token: string }
  const reindexed = await runToEnd([LAUNCHER, 'reindex'], env)
  assert.equal(reindexed.code, 0, reindexed.stderr)
  const server = await startServer(t, env)
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
  const sent = await fetch(`${server.url}/v1/inbox/events`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ source_ref: 'after the damage' }),
  })
  assert.deepEqual([sent.status, await sent.json()], [200, { ok: true, id: EVENTS + 1 }])
  const { code, of } = await examine(path)
  assert.equal(code, 1)
  assert.match(of('index')?.summary ?? '', new RegExp(`The indexer passed over ${lost.length} ids`))
  const refused = await salvage(path, `${path}.copy.db`)
  assert.match(refused.stderr, /Servers are running on the database\. Stop them first\./)
  assert.equal(server.child.exitCode, null)
})
