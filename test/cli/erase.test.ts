// `./intray erase`: counts, asks, erases and waits until nothing is left, with and without a server; a copy keeps it erased.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idOf, item, TENANT } from '../store/rows.ts'
import { intrayJson } from '../support/command.ts'
import { drivers } from '../support/drivers.ts'
import { withStore } from '../support/journal.ts'
import { intray, startServer } from '../support/process.ts'

const TENANT_ARGS = ['--account', '7', '--company', '42']
const body = (n: number) => ({ source_ref: `r:${n}`, contact: { email: 'ada@example.org' }, message: { text: 'hi' } })
const message = (n: number) => item({ sourceRef: `r:${n}`, channelRef: 'c', body: body(n) })

for (const driver of drivers) {
  test(`${driver.name}: without a server it counts, refuses without --yes, and erases`, async () => {
    const url = await driver.newDatabase()
    const env = { INTRAY_DATABASE_URL: url }
    await withStore(url, (store) => store.journal.append([message(0), message(1)]), 'server')
    const asked = ['erase', '--email', 'ADA@example.org', ...TENANT_ARGS]
    const found = { messages: 2, events: 2, refusals: 0 }
    assert.deepEqual(await intrayJson([...asked, '--dry-run'], env), { dry_run: true, ...found })
    const refused = await intray(asked, env)
    assert.equal(refused.code, 2)
    assert.match(refused.stderr, /There is no terminal to ask on\. Add --yes/)
    const erased = await intrayJson([...asked, '--yes'], env)
    assert.deepEqual(erased, { dry_run: false, ...found, pending: false })
    await withStore(url, async (store) => {
      assert.equal(await store.events.payload(1), null)
      const [entry] = await store.operators.listAudit(null, 1)
      assert.deepEqual([entry?.action, entry?.target, entry?.tenant], ['erase', 'email', TENANT])
    })
    const again = await intray([...asked, '--yes'], env)
    assert.equal(again.code, 0, again.stderr)
    assert.match(again.stdout.toString(), /^0 messages/)
  })

  test(`${driver.name}: what is not indexed yet is found`, async () => {
    const url = await driver.newDatabase()
    const env = { INTRAY_DATABASE_URL: url }
    // More than one step of the index takes.
    await withStore(url, async (store) => {
      for (let n = 0; n < 2100; n += 300)
        await store.journal.append(Array.from({ length: 300 }, (_, i) => message(n + i)))
    })
    const erased = await intrayJson(['erase', '--source-ref', 'r:2099', ...TENANT_ARGS, '--yes'], env)
    assert.equal(erased.messages, 1)
  })

  test(`${driver.name}: beside a server, by any selector; a copy keeps it erased`, async (t) => {
    const url = await driver.newDatabase()
    const env = { INTRAY_DATABASE_URL: url }
    const server = await startServer(t, env)
    const ids = await withStore(url, async (store) => (await store.journal.append([0, 1, 2].map(message))).map(idOf))
    for (const selector of [
      ['--event', String(ids[0])],
      ['--source-ref', 'r:1', ...TENANT_ARGS],
      ['--conversation', String(ids[0])],
    ]) {
      const erased = await intrayJson(['erase', ...selector, '--yes'], env)
      assert.deepEqual([erased.messages, erased.pending], [1, false], selector.join(' '))
    }
    server.child.kill('SIGTERM')
    assert.equal(await server.exited, 0)
    const target = await drivers.find((one) => one !== driver)!.newDatabase()
    await intrayJson(['copy', '--from', url, '--to', target], env)
    await withStore(target, async (store) => {
      assert.deepEqual(
        (await store.erasures.log(0, 10)).map(({ eventId }) => eventId),
        ids,
      )
      const [again] = await store.journal.append([message(1)])
      assert.deepEqual(again, { outcome: 'duplicate', id: ids[1] })
      assert.equal((await store.events.find(ids[1]!))!.sourceRef, null)
    })
  })
}

test('a call that names nothing, or two things, or no tenant, is wrong usage', async () => {
  const env = { INTRAY_DATABASE_URL: await drivers[0]!.newDatabase() }
  await withStore(env.INTRAY_DATABASE_URL, async () => {}, 'server')
  for (const args of [[], ['--event', '1', '--email', 'a@b'], ['--event', 'x'], ['--email', 'a@b']]) {
    const { code, stderr } = await intray(['erase', ...args, '--yes'], env)
    assert.equal(code, 2, `${args.join(' ')}: ${stderr}`)
  }
  const { code, stderr } = await intray(['erase', '--event', '9', '--yes'], env)
  assert.equal(code, 1)
  assert.match(stderr, /There is no event 9\./)
})
