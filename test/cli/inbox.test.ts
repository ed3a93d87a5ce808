// `./intray inbox list | show | claim | ack | release | requeue`: what processors do, for people, beside a server or without.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Store } from '../../src/store/contract/store.ts'
import { backDoorOf } from '../store/back-door.ts'
import { idOf, item, type ItemFields, NOON } from '../store/rows.ts'
import { type Driver, drivers } from '../support/drivers.ts'
import { startCommand } from '../support/fed-command.ts'
import { createToken, untilIndexed, withStore } from '../support/journal.ts'
import { post } from '../support/load.ts'
import { intray, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

const OURS = ['--account', '7', '--company', '42']
const THEIRS = ['--account', '8', '--company', '42']
/** The commands that settle are processes of their own, which a busy machine may take long to start. */
const LONG = ['--lease', '5m']

type Json = Record<string, unknown>
type Env = Record<string, string>

async function indexWhole(store: Store): Promise<void> {
  const limits = { maxRows: 1000, maxBytes: 1e9 }
  while ((await store.index.step(limits)).lag > 0);
  while ((await store.index.stepWords({ ...limits, maxWords: 256 })).searchLag > 0);
}

/** A database without a server, with these messages in it, indexed; and their ids. */
async function filled(driver: Driver, messages: readonly ItemFields[]): Promise<{ env: Env; ids: number[] }> {
  const url = await driver.newDatabase()
  const ids = await withStore(url, async (store) => {
    const found: number[] = []
    for (const message of messages) found.push(idOf((await store.journal.append([item(message)]))[0]))
    await indexWhole(store)
    return found
  })
  return { env: { INTRAY_DATABASE_URL: url }, ids }
}

/** What a command printed; fails if it did not end with this code. */
async function run(args: readonly string[], env: Env, expected = 0): Promise<{ text: string; stderr: string }> {
  const { code, stdout, stderr } = await intray(['inbox', ...args], env)
  assert.equal(code, expected, `inbox ${args.join(' ')}: ${stdout}${stderr}`)
  return { text: stdout.toString(), stderr }
}

const parsed = (text: string): Json[] => Array.from(text.matchAll(/[^\n]+/g), ([line]) => JSON.parse(line) as Json)
const idsOf = (rows: readonly Json[]): unknown[] => rows.map(({ id }) => id)

async function lines(args: readonly string[], env: Env, expected = 0): Promise<Json[]> {
  return parsed((await run([...args, '--json'], env, expected)).text)
}

for (const driver of drivers) {
  test(`${driver.name}: list shows a tenant's events, newest first, by filters, page by page`, async () => {
    const at = (minutes: number) => NOON + 60_000 * minutes
    const { env, ids } = await filled(driver, [
      {
        channelRef: 'shop',
        sourceRef: 's1',
        receivedAt: at(0),
        body: { contact: { name: 'Ada' }, message: { text: 'Malta' } },
      },
      {
        channelRef: 'shop',
        receivedAt: at(1),
        body: { contact: { email: 'Bob@x.example' }, message: { text: 'Gozo' } },
      },
      { accountId: 8, body: { message: { text: 'not yours' } } },
      { channelRef: '\u001b]0;owned\u0007', receivedAt: at(2), body: { message: { text: 'a\u202eb' } } },
    ])
    const revision = await withStore(env.INTRAY_DATABASE_URL!, async (store) => {
      await store.journal.append([item({ sourceRef: 's1', receivedAt: at(3), body: { message: { text: 'Malta!' } } })])
      await indexWhole(store)
      return store.events.watermark()
    })
    const [first, second, , hostile] = ids
    const list = (...args: string[]) => lines(['list', ...OURS, ...args], env)

    const all = await list()
    assert.deepEqual(idsOf(all), [revision, hostile, second, first])
    assert.deepEqual(all[3]!.contact, { name: 'Ada', email: null })
    for (const [args, expected] of [
      [
        ['--channel', 'shop'],
        [second, first],
      ],
      [['--email', 'bob@X.example'], [second]],
      [
        ['--source-ref', 's1'],
        [revision, first],
      ],
      [['--source-ref', 's1', '--kind', 'event'], [first]],
      [['--kind', 'revision'], [revision]],
      [
        ['--q', 'malt'],
        [revision, first],
      ],
      [
        ['--after', '2026-11-15T12:01:00Z', '--before', '2026-11-15T12:03:00Z'],
        [hostile, second],
      ],
      [['--channel', 'nowhere'], []],
    ] as const) {
      assert.deepEqual(idsOf(await list(...args)), expected, args.join(' '))
    }

    for (const filter of [[], ['--after', '2026-11-15T12:00:00Z']]) {
      const seen: unknown[] = []
      for (let cursor: string[] = []; ; ) {
        const { text, stderr } = await run(['list', ...OURS, ...filter, '--limit', '3', ...cursor, '--json'], env)
        seen.push(...idsOf(parsed(text)))
        const more = /--cursor (\S+)/.exec(stderr)
        if (!more) break
        cursor = ['--cursor', more[1]!]
      }
      assert.deepEqual(seen, [revision, hostile, second, first])
    }

    const { text, stderr } = await run(['list', ...OURS], env)
    assert.equal(stderr, '')
    assert.match(text, /^ID +RECEIVED +CHANNEL +CONTACT +TEXT$/m)
    assert.match(text, new RegExp(`^${first} +2026-11-15T12:00:00.000Z +shop +Ada +Malta$`, 'm'))
    assert.match(text, new RegExp(`^${revision} .*\\(revises ${first}\\) Malta!$`, 'm'))
    assert.match(text, /\\u001b\]0;owned\\u0007 .*a\\u202eb$/m)
    assert.doesNotMatch(text, /[^\P{Cc}\n]|\p{Cf}|not yours/u)
    assert.equal((await run(['list', '--account', '9', '--company', '9'], env)).text, 'No events found.\n')
  })

  test(`${driver.name}: show tells what is known of an event and what became of it, and gives its bytes`, async () => {
    const bytes = '{"source_ref":"s", "n":12345678901234567890,\r\n"contact":[]}'
    const { env, ids } = await filled(driver, [
      { channelRef: 'shop', sourceRef: 's', body: bytes },
      { channelRef: 'shop', body: {} },
    ])
    const [id, next] = ids as [number, number]
    await withStore(env.INTRAY_DATABASE_URL!, async (store) => {
      await store.journal.append([item({ sourceRef: 's', channelRef: 'shop', body: bytes })])
      await store.journal.append([item({ sourceRef: 's', body: 'other bytes' })])
      await indexWhole(store)
    })
    const revision = await withStore(env.INTRAY_DATABASE_URL!, (store) => store.events.watermark())
    const [claimed] = await lines(['claim', ...OURS, ...LONG, '--limit', '1'], env)
    await run(
      ['release', String(id), String(claimed!.lease_id), ...OURS, '--error', 'no\u001b[2J', '--delay', '1h'],
      env,
    )

    const [shown] = await lines(['show', String(id), ...OURS], env)
    const { conversation, deliveries, warnings } = shown as { conversation: Json; deliveries: Json[]; warnings: Json[] }
    assert.deepEqual([shown!.resends, shown!.revisions, shown!.revision_ids], [1, 1, [revision]])
    assert.deepEqual([conversation.id, conversation.event_count, conversation.last_event_id], [id, 2, next])
    assert.deepEqual(warnings, [{ path: '/contact', expected: 'object', got: 'array' }])
    const [{ history, ...delivery }] = deliveries as [Json & { history: Json[] }]
    assert.deepEqual([delivery.subscription, delivery.state, delivery.attempts], ['default', 'pending', 1])
    assert.deepEqual([history[0]!.what, history[0]!.key_id, history[0]!.error], ['released', 'operator', 'no\u001b[2J'])

    const { text } = await run(['show', String(id), ...OURS], env)
    assert.match(text, /^\/contact +object +array$/m)
    assert.match(text, /^event_count +2$/m)
    assert.match(text, /^default +pending +1 +operator +\d{4}-\S+Z$/m)
    assert.match(text, /^default +\S+Z +released +pending +1 +operator +no\\u001b\[2J$/m)
    assert.doesNotMatch(text, /[^\P{Cc}\n]/u)
    assert.equal((await lines(['show', String(revision), ...OURS], env))[0]!.revises, id)

    assert.equal((await run(['show', String(id), ...OURS, '--raw'], env)).text, bytes)
    for (const more of [[], ['--raw'], ['--json']]) {
      const refused = await run(['show', String(id), ...THEIRS, ...more], env, 1)
      assert.deepEqual([refused.text, refused.stderr], ['', `intray: This tenant has no event ${id}.\n`])
    }
    await backDoorOf(driver).replacePayload(env.INTRAY_DATABASE_URL!, id, Buffer.from('{}'))
    const damaged = await run(['show', String(id), ...OURS, '--raw'], env, 1)
    assert.equal(damaged.text, '')
    assert.match(damaged.stderr, /^intray: The payload cannot be shown: /)
  })

  test(`${driver.name}: beside a server, what is claimed in a pipe is acknowledged from it`, async (t) => {
    const { env, ids } = await served(t, driver, [
      '{"channel_ref":"a",\r\n "n":12345678901234567890, "t":"x\u2028"}',
      '{"channel_ref":"a"}',
      '{"channel_ref":"b"}',
    ])
    const claim = await run(['claim', ...OURS, ...LONG, '--json'], env)
    assert.equal(claim.text.split('\n').length, 4, 'a line for each event')
    assert.match(claim.text, /"n":12345678901234567890,/)
    const claimed = parsed(claim.text)
    assert.deepEqual(idsOf(claimed).toSorted(), ids.toSorted())
    assert.ok(claimed.every(({ lease_id: lease, attempts }) => typeof lease === 'string' && attempts === 1))
    assert.equal((await run(['claim', ...OURS], env)).text, 'There are no events to claim.\n')

    const input = `${claim.text}\nno JSON\n{"id":"x"}\n`
    const { code, stdout, stderr } = await startCommand(t, ['inbox', 'ack', '--stdin', ...OURS, '--json'], env, input)
      .finished
    const settled = parsed(stdout.toString())
    assert.deepEqual(idsOf(settled), idsOf(claimed))
    assert.ok(settled.every(({ ok, state }) => ok === true && state === 'done'))
    assert.match(stderr, /^line 5: The line is not JSON\.\nline 6: `id` must be a whole number/)
    assert.equal(code, 1, 'two lines were no leases')
    const again = await startCommand(t, ['inbox', 'ack', '--stdin', ...OURS], env, claim.text).finished
    assert.deepEqual([again.code, again.stderr], [0, ''])
    assert.match(again.stdout.toString(), new RegExp(`^${ids[0]} {2}done$`, 'm'))
  })

  test(`${driver.name}: a lease that is lost is told, and the rest is done`, async () => {
    const { env, ids } = await filled(driver, [
      { channelRef: 'a', body: { message: { text: 'Hello' } } },
      { channelRef: 'a' },
      { channelRef: 'b' },
    ])
    const [first, second, third] = ids.map(String) as [string, string, string]
    const { text, stderr } = await run(
      ['claim', ...OURS, ...LONG, '--limit', '2', '--unordered', '--channel', 'a'],
      env,
    )
    const lease = new RegExp(`^${first} +([0-9a-f-]{36}) +1 +a +- +Hello$`, 'm').exec(text)?.[1]
    assert.ok(lease, text)
    assert.match(stderr, /^The lease ends at \S+Z\./)
    const mixed = await run(['ack', second, lease, first, 'another', third, lease, ...OURS], env, 1)
    const lost = 'lease lost, nothing was changed'
    assert.equal(mixed.text, `${second}  done\n${first}  ${lost}\n${third}  ${lost}\n`)
    const foreign = await lines(['ack', first, lease, ...THEIRS], env, 1)
    assert.deepEqual(foreign, [{ id: Number(first), ok: false, error: 'lease_lost' }])

    const released = await run(['release', first, lease, ...OURS, '--delay', '0s'], env)
    assert.match(released.text, new RegExp(`^${first} {2}pending, handed out again from \\S+Z\n$`))
    await run(['release', first, lease, ...OURS], env, 1)
    assert.deepEqual(idsOf(await lines(['claim', ...OURS], env)).toSorted(), [Number(first), Number(third)])
    const unknown = await run(['claim', ...OURS, '--subscription', 'crm'], env, 1)
    assert.equal(unknown.stderr, 'intray: This tenant has no subscription crm. It has: default.\n')
  })

  test(`${driver.name}: requeue counts the dead first, and brings back one, a channel's, or all`, async () => {
    const messages = [{ channelRef: 'a' }, { channelRef: 'b' }, { channelRef: 'b' }, {}]
    const { env, ids } = await filled(driver, messages)
    const once = { ...env, INTRAY_MAX_ATTEMPTS: '1' }
    const [first, , , last] = ids.map(String) as [string, string, string, string]
    const killAll = async (): Promise<void> => {
      const claimed = await lines(['claim', ...OURS, ...LONG, '--unordered'], once)
      const pairs = claimed.flatMap(({ id, lease_id: lease }) => [String(id), String(lease)])
      const states = await lines(['release', ...pairs, ...OURS, '--error', 'broken'], once)
      assert.ok(states.every(({ state }) => state === 'dead'))
    }
    await killAll()
    const requeue = async (...args: string[]) => (await run(['requeue', ...args, ...OURS], env)).text

    assert.equal(await requeue('--dead', '--dry-run'), '4 dead events in default\n')
    assert.equal(await requeue('--dead', '--dry-run', '--channel', 'b'), '2 dead events in default\n')
    assert.equal(await requeue(first, '--dry-run'), '1 dead event in default\n')
    assert.equal(await requeue(first), '1 dead event in default\n1 requeued\n')
    const alive = await run(['requeue', first, ...OURS], env, 1)
    assert.equal(alive.stderr, `intray: Event ${first} is not dead in default: it is pending.\n`)
    await run(['requeue', last, ...THEIRS], env, 1)
    assert.equal(await requeue('--dead', '--channel', 'b'), '2 dead events in default\n2 requeued\n')
    const [rest] = await lines(['requeue', '--dead', ...OURS], env)
    assert.deepEqual(rest, { dry_run: false, matched: 1, requeued: 1 })
    assert.equal(await requeue('--dead'), '0 dead events in default\n')
    assert.deepEqual(idsOf(await lines(['claim', ...OURS], env)).toSorted(), ids)
    const [shown] = await lines(['show', last, ...OURS], env)
    const [{ history }] = shown!.deliveries as [{ history: Json[] }]
    assert.deepEqual(
      history.map(({ what, key_id: by }) => [what, by]),
      [
        ['released', 'operator'],
        ['requeued', 'operator'],
      ],
    )
  })
}

/** A server that runs until the end of the test and has these messages, indexed; and their ids. */
async function served(t: TestContext, driver: Driver, bodies: readonly string[]): Promise<{ env: Env; ids: number[] }> {
  const env = { INTRAY_DATABASE_URL: await driver.newDatabase() }
  const token = await withStore(env.INTRAY_DATABASE_URL, (store) => createToken(store))
  const server = await startServer(t, env)
  const ids: number[] = []
  for (const body of bodies) ids.push((await post(server.port, token, body)).json?.id as number)
  await untilIndexed(env.INTRAY_DATABASE_URL)
  return { env, ids }
}

test('what is not indexed yet is told, not passed over in silence', async () => {
  const url = await drivers[0]!.newDatabase()
  await withStore(url, (store) => store.journal.append([item()]))
  for (const [action, text] of [
    ['list', 'No events found.\n'],
    ['claim', 'There are no events to claim.\n'],
  ] as const) {
    const said = await run([action, ...OURS], { INTRAY_DATABASE_URL: url })
    assert.equal(said.text, text)
    assert.match(said.stderr, /^1 stored rows of all tenants are not indexed yet/)
  }
})

test('every action has a help of its own, and a call that is wrong is refused with code 2, before any database', async () => {
  const folder = tempFolder('cli-inbox')
  const env = { INTRAY_DATABASE_URL: `sqlite:${join(folder, 'intray.db')}` }
  for (const action of ['list', 'show', 'tail', 'claim', 'ack', 'release', 'requeue']) {
    const { text } = await run([action, '--help'], env)
    assert.match(text, new RegExp(`^Usage: \\./intray inbox ${action} `))
    const { stderr } = await run([action, ...(action === 'list' ? [] : ['--account', '7'])], env, 2)
    assert.match(stderr, /^intray: .*(ID|events are|--account N)/)
  }
  for (const args of [
    ['list', '--limit', '0'],
    ['list', '--after', 'yesterday'],
    ['list', '--kind', 'resend'],
    ['list', '--q', '!'],
    ['list', '--cursor', 'x'],
    ['list', '--after', '2026-11-15T12:00:00Z', '--cursor', 'eyJpZCI6ODEyfQ'],
    ['list', 'more'],
    ['show', 'x'],
    ['show', '1', '2'],
    ['claim', '--limit', '201'],
    ['claim', '--lease', '30'],
    ['claim', '--lease', '13h'],
    ['claim', '--subscription', 'No Name'],
    ['ack', '1'],
    ['ack', 'x', 'lease'],
    ['ack', '1', 'lease', '--stdin'],
    ['ack', '1', 'lease', '--delay', '1s'],
    ['release', '1', 'lease', '--delay', 'soon'],
    ['release', '1', 'lease', '--error', ''],
    ['requeue', '1', '--dead'],
    ['requeue', '1', '2'],
    ['requeue', '1', '--channel', 'a'],
  ]) {
    const { stderr } = await run([...args, ...OURS], env, 2)
    assert.match(stderr, /^intray: \S.*\n/, args.join(' '))
  }
  assert.deepEqual(readdirSync(folder), [])
})
