// What only the console does: tokens, refusals that are accepted after all, test events, the overview.

import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { tokenKeyId } from '../../src/auth/token.ts'
import { startTestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'
import type { Json } from '../support/inbox.ts'
import { idOf } from '../support/intake.ts'
import {
  createOperator,
  cookieOf,
  operatorOf,
  operatorWith,
  signIn,
  signInCode,
  type TestOperator,
} from '../support/operators.ts'
import { sharedApp } from '../support/shared-app.ts'
import { until } from '../support/until.ts'

const TENANT = { accountId: 7, companyId: 42 }
const MINUTE_MS = 60_000

for (const driver of drivers) {
  describe(`the console's own interface on ${driver.name}`, () => {
    const shared = sharedApp(driver)
    let admin: TestOperator
    before(async () => {
      admin = await operatorOf(shared.app)
    })
    const ping = (token: string) =>
      shared.app.send({ path: '/api/ping', headers: { Authorization: `Bearer ${token}` } })

    test('a token is made, shown once, works, is disabled, enabled and replaced', async () => {
      const before = Date.now()
      const made = await admin.post('/v1/console/tokens', { scope: 'cf', label: 'contact form', expires_in: '30d' })
      const after = Date.now()
      assert.equal(made.status, 200)
      const { secret, ...token } = made.json!.token as Record<string, string>
      assert.equal(token.key_id, tokenKeyId(secret!))
      const countedFrom = Date.parse(token.expires_at!) - 30 * 86_400_000
      assert.ok(before <= countedFrom && countedFrom <= after, `${before} ≤ ${countedFrom} ≤ ${after}`)
      assert.deepEqual((await ping(secret!)).json, { ok: true, account_id: 7, company_id: 42, scope: 'cf' })
      const list = await admin.get('/v1/console/tokens')
      // Others may have been made in the same millisecond.
      const listed = (list.json!.tokens as Json[]).find(({ key_id: keyId }) => keyId === token.key_id)
      assert.deepEqual(listed, token)
      assert.ok(!list.text.includes(secret!))

      const path = `/v1/console/tokens/${token.key_id}`
      // Where the machine stands still for longer than the answer waits, it says that it is not in force yet: asked again, it is.
      const change = (name: 'disable' | 'enable') =>
        until(`${name} is in force`, async () => {
          const { json } = await admin.post(`${path}/${name}`)
          return json?.in_force === true && (json.token as Json)
        })
      assert.equal((await change('disable')).state, 'disabled')
      assert.equal((await ping(secret!)).json?.error, 'token_disabled', 'in force when it is answered')
      await change('enable')
      assert.equal((await ping(secret!)).status, 200)

      const rotated = await admin.post(`${path}/rotate`, { overlap: '1h' })
      const successor = rotated.json?.token as Record<string, string>
      assert.equal(successor.rotated_from, token.key_id)
      assert.equal(successor.label, 'contact form')
      for (const one of [secret!, successor.secret!]) assert.equal((await ping(one)).status, 200)
      const again = await admin.post(`${path}/rotate`, {})
      assert.equal(again.status, 400)
      assert.match(String(again.json?.message), new RegExp(successor.key_id!))
    })

    test('400: a token with a scope, a label or a life that cannot be, or with a field that nobody knows', async () => {
      const generation = await shared.app.store.tokens.generation()
      for (const body of [
        { scope: 'Not A Scope' },
        { label: 'x'.repeat(201) },
        { expires_in: '1s' },
        { expires_in: '366d' },
        { expires_in: 'soon' },
        { expires_in: 30 },
        { account_id: '8' },
      ]) {
        const answer = await admin.post('/v1/console/tokens', body)
        assert.equal(answer.json?.error, 'invalid_request', JSON.stringify(body))
      }
      assert.equal(await shared.app.store.tokens.generation(), generation)
    })

    test('tokens and tenants come page by page', async () => {
      const { app } = shared
      for (let n = 0; n < 5; n++) await app.createToken({ accountId: 100 + n, companyId: 9000 })
      const tenants: Json[] = []
      for (let cursor = ''; ; ) {
        const page = (await admin.get(`/v1/console/tenants?limit=2${cursor}`)).json!
        tenants.push(...(page.tenants as Json[]))
        if (page.next === null) break
        cursor = `&cursor=${encodeURIComponent(page.next as string)}`
      }
      assert.deepEqual(
        tenants.filter(({ company_id: id }) => id === 9000).map(({ account_id: id }) => id),
        [100, 101, 102, 103, 104],
      )
      assert.equal(new Set(tenants.map((one) => JSON.stringify(one))).size, tenants.length)
      for (let n = 0; n < 4; n++) await app.createToken({ accountId: 100, companyId: 9000 })
      const keys: unknown[] = []
      for (let cursor = ''; ; ) {
        const page = (await admin.get(`/v1/console/tokens?limit=2${cursor}`, '100/9000')).json!
        keys.push(...(page.tokens as Json[]).map(({ key_id: id }) => id))
        if (page.next === null) break
        cursor = `&cursor=${page.next as string}`
      }
      assert.equal(keys.length, 5)
      assert.equal(new Set(keys).size, 5)
      for (const path of ['tenants?cursor=x', 'tokens?cursor=x', 'audit?cursor=x']) {
        assert.equal((await admin.get(`/v1/console/${path}`)).status, 400, path)
      }
    })

    test('a refusal is shown whole, and becomes an event when it is corrected, once', async () => {
      const { app } = shared
      await app.post('{"source_ref":"later"')
      const refusal = await until('it is kept', async () => (await app.store.refusals.list(TENANT, 1e15, 1))[0])
      const path = `/v1/console/refusals/${refusal.id}`
      const shown = (await admin.get(path)).json?.refusal as Json
      assert.equal(shown.body, '{"source_ref":"later"')
      assert.equal(Buffer.from(shown.body_base64 as string, 'base64').toString(), '{"source_ref":"later"')
      assert.equal(shown.accepted_as, null)

      assert.equal((await admin.post(`${path}/accept`, '{"source_ref":')).json?.error, 'invalid_json')
      assert.equal((await admin.post(`${path}/accept`, { source_ref: 7.5 })).json?.error, 'invalid_payload')
      assert.equal(((await admin.get(path)).json!.refusal as Json).accepted_as, null)

      const corrected = '{ "source_ref": "later",  "n": 1.0 }'
      const accepted = await admin.post(`${path}/accept`, corrected)
      assert.equal(accepted.status, 200)
      const event = await app.store.events.find(idOf(accepted), TENANT)
      assert.equal(event?.origin, 'accepted_refusal')
      assert.equal(event.sourceRef, 'later')
      assert.match(event.keyId, /^op_/)
      assert.equal(Buffer.from((await app.store.events.payload(event.id))!).toString(), corrected)
      assert.equal(((await admin.get(path)).json!.refusal as Json).accepted_as, event.id)
      assert.equal(idOf(await admin.post(`${path}/accept`, corrected)), event.id)
      const other = await admin.post(`${path}/accept`, '{"other":true}')
      assert.equal(other.json?.error, 'invalid_request', 'what would not be kept gets no 2xx')
      assert.match(String(other.json?.message), new RegExp(`as event ${event.id},`))
      assert.deepEqual(await app.store.events.revisions(event.id, 0, 10), [])
    })

    test('of two who accept a refusal at once with different bytes, one is told that it was not taken', async () => {
      const { app } = shared
      await app.post('{"source_ref":"at once"')
      const refusal = await until('it is kept', async () =>
        (await app.store.refusals.list(TENANT, 1e15, 9)).find(({ acceptedAs }) => acceptedAs === null),
      )
      const path = `/v1/console/refusals/${refusal.id}/accept`
      const bodies = Array.from({ length: 6 }, (_, n) => `{"source_ref":"at once","n":${n}}`)
      const answers = await Promise.all(bodies.map((body) => admin.post(path, body)))
      const taken = answers.flatMap((one, n) => (one.status === 200 ? [{ id: idOf(one), body: bodies[n] }] : []))
      assert.equal(taken.length, 1)
      assert.equal(Buffer.from((await app.store.events.payload(taken[0]!.id))!).toString(), taken[0]!.body)
      assert.ok(answers.every(({ status }) => status === 200 || status === 400))
    })

    test('a test event is an event like any other, and says that it is one', async () => {
      const { app } = shared
      const sent = await admin.post('/v1/console/test-events', '{"source_ref":"try","message":{"text":"hello"}}')
      assert.equal(sent.json?.outcome, 'stored')
      const again = await admin.post('/v1/console/test-events', '{"source_ref":"try","message":{"text":"hello"}}')
      assert.deepEqual([again.json?.id, again.json?.outcome], [sent.json?.id, 'duplicate'])
      const shown = await admin.get(`/v1/inbox/events/${idOf(sent)}`)
      assert.equal((shown.json!.event as Json).origin, 'test')
      assert.equal((await admin.post('/v1/console/test-events', '[]')).json?.error, 'invalid_json')
      const large = await admin.post('/v1/console/test-events', JSON.stringify({ x: 'x'.repeat(1_100_000) }))
      assert.equal(large.status, 413)
      assert.equal((await app.store.events.find(idOf(sent)))?.route, '/v1/console/test-events')
    })

    test('a requeue that only counts is not in the audit log', async () => {
      const answer = await admin.post('/v1/inbox/requeue', { dry_run: true })
      assert.equal(answer.json?.dry_run, true)
      const entries = await shared.app.store.operators.listAudit(null, 50)
      assert.ok(!entries.some(({ requestId }) => requestId === answer.headers['x-request-id']))
    })
  })

  test(`the overview on ${driver.name} counts what came in, by minute, today and by sender`, async (t) => {
    const clock = new TestClock(Date.parse('2026-11-15T00:30:30.000Z'))
    const app = await startTestApp(t, driver, { clock })
    const name = await createOperator(app)
    const answer = await signIn(app, { link: await signInCode(app, name, clock.now()) })
    const admin = operatorWith(app, name, cookieOf(answer))
    clock.advance(-40 * MINUTE_MS)
    for (let n = 0; n < 3; n++) await app.post({ n })
    clock.advance(40 * MINUTE_MS)
    await app.post({ source_ref: 'a' })
    await app.post({ source_ref: 'a' })
    await app.post({ source_ref: 'a', revised: true })
    const other = await app.createToken()
    await app.post({ source_ref: 'b' }, { Authorization: `Bearer ${other}` })
    await app.post('not json')
    await until('the refusal is kept', async () => (await app.store.refusals.list(TENANT, 1e15, 1))[0])
    await app.indexed()

    const { json } = await admin.get('/v1/console/overview')
    const minutes = (json!.intake as { minutes: Json[] }).minutes
    assert.equal(minutes.length, 60)
    assert.equal(minutes[0]!.at, '2026-11-14T23:31:00.000Z')
    assert.deepEqual(minutes.at(-1), { at: '2026-11-15T00:30:00.000Z', events: 2, duplicates: 1, revisions: 1 })
    assert.deepEqual(minutes[19], { at: '2026-11-14T23:50:00.000Z', events: 3, duplicates: 0, revisions: 0 })
    assert.equal(minutes.filter(({ events }) => events === 0).length, 58)
    assert.deepEqual(json!.today, { events: 2, duplicates: 1, revisions: 1 }, 'yesterday is not today')
    assert.deepEqual(json!.refusals, [{ code: 'invalid_json', count: 1, last_at: '2026-11-15T00:30:30.000Z' }])
    assert.deepEqual(json!.queue, { pending: 5, leased: 0, dead: 0, counted_up_to: 10_000 })
    assert.equal(json!.oldest_pending_at, '2026-11-14T23:50:30.000Z')
    assert.deepEqual(
      (json!.senders as Json[]).map(({ key_id, events_24h }) => [key_id, events_24h]),
      [
        [tokenKeyId(app.token), 4],
        [tokenKeyId(other), 1],
      ],
    )
    assert.equal(json!.index_lag, 0)

    // The same after a rebuild.
    await app.store.index.requestRebuild()
    await app.indexed()
    assert.deepEqual((await admin.get('/v1/console/overview')).json, json)
  })
}
