// `./intray retention`: rules that are kept, shown and previewed; the server beside it carries them out.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { NO_RETENTION } from '../../src/model/retention.ts'
import { openStore } from '../../src/store/open.ts'
import { item, TENANT } from '../store/rows.ts'
import { append, indexAll } from '../store/suite.ts'
import { drivers } from '../support/drivers.ts'
import { intray, startServer } from '../support/process.ts'
import { withStore } from '../support/journal.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const DAY = 86_400_000
const OF_TENANT = ['--account', '7', '--company', '42']

for (const driver of drivers) {
  test(`${driver.name}: a rule is set in parts, shown, audited, and previewed before anything goes`, async (t) => {
    const url = await driver.readyDatabase()
    const store = await openStore(url, { role: 'tool' })
    t.after(() => store.close())
    for (const days of [400, 40, 1])
      await append(store, { sourceRef: `r:${days}`, receivedAt: Date.now() - days * DAY })
    await store.journal.append([item({ sourceRef: 'r:400', body: 'other', receivedAt: Date.now() - 400 * DAY })])
    await indexAll(store)
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await intray(['retention', ...args], { INTRAY_DATABASE_URL: url })
      assert.equal(code, 0, stderr)
      return stdout.toString()
    }
    assert.match(
      await run('show'),
      /^TENANT +EVENTS +REFUSALS +HISTORY +UNPROCESSED\nall others +never +30d +never +keep\n$/,
    )
    assert.equal(await run('preview'), 'Nothing is older than the rules allow.\n')
    await run('set', '--default', '--events', '365d', '--history', '90d')
    await run('set', ...OF_TENANT, '--refusals', 'never')
    await run('set', ...OF_TENANT, '--unprocessed', 'purge')
    assert.deepEqual(JSON.parse(await run('show', '--json')), {
      default: { events: '365d', refusals: '30d', history: '90d', unprocessed: 'keep' },
      tenants: [
        {
          account_id: 7,
          company_id: 42,
          events: 'default',
          refusals: 'never',
          history: 'default',
          unprocessed: 'purge',
        },
      ],
    })
    const preview = async (...args: string[]) => {
      const { oldest, ...counts } = JSON.parse(await run('preview', '--json', ...args)) as Record<string, unknown>
      assert.match(String(oldest), /^\d{4}-/)
      return counts
    }
    const tenant = { account_id: 7, company_id: 42 }
    assert.deepEqual(await preview(), { ...tenant, messages: 1, events: 2, held: 0, refusals: 0, history: 0 })
    assert.deepEqual(await preview('--events', '30d', ...OF_TENANT), {
      ...{ ...tenant, messages: 2, events: 3, held: 0, refusals: 0, history: 0 },
    })
    assert.equal((await store.inbox.events(TENANT, {}, null, 10)).events.length, 4, 'nothing has gone')
    assert.deepEqual(
      (await store.operators.listAudit(null, 10)).map(({ action, tenant: of }) => [action, of?.companyId]),
      [
        ['retention_set', 42],
        ['retention_set', 42],
        ['retention_set', undefined],
      ],
    )
  })

  test(`${driver.name}: a running server carries out a rule that was set beside it`, async (t) => {
    const url = await driver.readyDatabase()
    const store = await openStore(url, { role: 'tool' })
    t.after(() => store.close())
    const old = await append(store, { sourceRef: 'old', receivedAt: Date.now() - 3 * DAY })
    const young = await append(store, { sourceRef: 'young', receivedAt: Date.now() })
    await startServer(t, { INTRAY_DATABASE_URL: url, INTRAY_RETENTION_EVERY: '1s' })
    const { code, stderr } = await intray(['retention', 'set', '--default', '--events', '2d'], {
      INTRAY_DATABASE_URL: url,
    })
    assert.equal(code, 0, stderr)
    await until('the old message is gone', async () => (await store.events.find(old)) === null)
    assert.ok(await store.events.find(young))
    const entry = await until('it is audited', async () =>
      (await store.operators.listAudit(null, 10)).find(({ action }) => action === 'retention_delete'),
    )
    assert.deepEqual(
      [entry.operator, entry.tenant, entry.target],
      ['(retention)', { ...TENANT }, 'events 1, refusals 0, history 0, held back 0'],
    )
  })
}

for (const [n, driver] of drivers.entries()) {
  test(`${driver.name}: doctor, copy and reindex are content with what has gone`, async (t) => {
    const url = await driver.readyDatabase()
    const target = await drivers[1 - n]!.newDatabase()
    const env = { INTRAY_DATABASE_URL: url }
    const at = { channelRef: 'c', receivedAt: Date.now() - 9 * DAY }
    const bodyOf = (ref: string, text: string) => ({ source_ref: ref, channel_ref: 'c', text })
    const fields = (ref: string, text: string) => ({ ...at, sourceRef: ref, body: bodyOf(ref, text) })
    const first = await withStore(url, async (store) => {
      const id = await append(store, fields('a', 'old'))
      await append(store, { ...fields('b', 'young'), receivedAt: Date.now() })
      await indexAll(store)
      const step = { tenant: TENANT, before: Date.now() - DAY, now: Date.now(), purgesUnprocessed: false }
      assert.equal((await store.retention.purgeStep({ ...step, after: null, dryRun: false })).rows, 1)
      while (await store.retention.followPurges());
      await store.journal.append([item({ ...fields('a', 'other'), receivedAt: Date.now() })])
      await indexAll(store)
      await store.retention.setRule({ ...NO_RETENTION, tenant: TENANT, events: 5 })
      return id
    })
    const run = async (args: readonly string[]) => {
      const { code, stdout, stderr } = await intray(args, env)
      assert.equal(code, 0, `${args.join(' ')}: ${stdout.toString()}${stderr}`)
    }
    const checksOf = async (of: string) => {
      const { stdout } = await intray(['doctor', '--json'], { INTRAY_DATABASE_URL: of })
      const { checks } = JSON.parse(stdout.toString()) as { checks: Record<'name' | 'verdict' | 'summary', string>[] }
      // How a test's database was made and is synced is another matter.
      return checks.filter(({ name }) => ['structure', 'payloads', 'references', 'keys', 'index'].includes(name))
    }
    const before = await checksOf(url)
    assert.deepEqual(Array.from(new Set(before.map(({ verdict }) => verdict))), ['ok'])
    assert.match(before.find(({ name }) => name === 'keys')!.summary, /1 keys have no event any more, which is fine/)
    if (driver.name === 'sqlite') {
      const file = join(tempFolder('retained'), 'backup.db')
      await run(['backup', file])
      await run(['backup', '--verify', file])
    }
    await run(['copy', '--to', target])
    await run(['reindex'])
    assert.deepEqual(await checksOf(target), before)
    await withStore(target, async (store) => {
      const conversation = (await store.events.conversation(TENANT, 'c'))!
      assert.deepEqual([conversation.id, conversation.eventCount], [first, 2])
      assert.deepEqual((await store.journal.append([item(fields('a', 'old'))]))[0], { outcome: 'duplicate', id: first })
      assert.equal((await store.retention.rules()).length, 1)
    })
    t.diagnostic(`copied to ${drivers[1 - n]!.name}`)
  })
}

test('an age that is not whole days, a rule without an owner, and one without a change are usage errors', async () => {
  for (const [args, message] of [
    ['set --default --events 0d', /--events must be from 1d to 36500d/],
    ['set --default --events 36501d', /--events must be/],
    ['set --default --events 12h', /--events must be/],
    ['set --default --unprocessed no', /--unprocessed must be/],
    ['set --events 1d', /The tenant is missing/],
    ['set --default --account 1 --company 1 --events 1d', /Give either --default/],
    ['set --default', /Nothing to change/],
    ['preview --events soon', /--events must be/],
  ] as const) {
    const { code, stderr } = await intray(['retention', ...args.split(' ')], {})
    assert.equal(code, 2, args)
    assert.match(stderr, message)
  }
})
