// Hooks over HTTP: what vendors send is stored as sent, once; everything else about their addresses.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { rotateAddress, rotateSecret } from '../../src/auth/hook-lifecycle.ts'
import { MAX_CHALLENGE_UNITS } from '../../src/hooks/challenge.ts'
import { HookReading } from '../../src/hooks/hook-reading.ts'
import { HOOK_STAND_IN } from '../../src/hooks/request.ts'
import { HOOK_PATH } from '../../src/model/hook.ts'
import { SecretBox } from '../../src/runtime/secret-box.ts'
import { SCANNED_BYTES } from '../../src/runtime/sliced-work.ts'
import type { TestApp } from '../support/app.ts'
import type { TestAnswer } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import { HOOK_SAMPLES, secretFor, signSample } from '../support/hook-samples/all.ts'
import { type HookSample, SHA256 } from '../support/hook-samples/sample.ts'
import { createHook, TEST_SECRETS_KEY, type TestHook } from '../support/hooks.ts'
import { readerOf } from '../support/inbox.ts'
import { idOf, jsonHeaders } from '../support/intake.ts'
import { sharedApp } from '../support/shared-app.ts'
import { startTestApp } from '../support/app.ts'
import { until } from '../support/until.ts'

const PUBLIC_URL = 'https://in.example.com'
const TENANT = { accountId: 7, companyId: 42 }
const SETTINGS = { publicUrl: PUBLIC_URL }

/** Sends a sample as the vendor does: signed now, with the vendor's own package where it has one. */
async function deliver(app: TestApp, hook: TestHook, recipe: string, sample: HookSample, secret = hook.secret) {
  const options = { secret, now: Date.now(), publicUrl: PUBLIC_URL, target: hook.path }
  const { target, headers, body } = await signSample(recipe, sample, options)
  const send = () =>
    app.send({ method: 'POST', path: target, headers: { 'Content-Type': sample.contentType, ...headers }, body })
  return { answer: await send(), again: send, body }
}

const post = (
  app: TestApp,
  { path }: { path: string },
  body: string | Uint8Array,
  headers: Record<string, string> = {},
) => app.send({ method: 'POST', path, body, headers: { 'Content-Type': 'application/json', ...headers } })

async function eventIds(app: TestApp, keyId: string): Promise<number[]> {
  const { events } = await app.store.hooks.deliveries(TENANT, keyId, 100)
  return events.map(({ event }) => event.id)
}

const newestRefusal = (app: TestApp, requestId: unknown) =>
  until('the refusal is kept', async () =>
    (await app.store.refusals.list(TENANT, 1e15, 5)).find((one) => one.requestId === requestId),
  )

const requestId = ({ headers }: TestAnswer) => headers['x-request-id']

for (const driver of drivers) {
  describe(`hooks on ${driver.name}: what vendors send`, () => {
    const shared = sharedApp(driver, { settings: SETTINGS })

    for (const [recipe, samples] of Object.entries(HOOK_SAMPLES)) {
      test(`${recipe}: stored as sent and signed, read as the recipe says, and a re-send is a duplicate`, async () => {
        const { app } = shared
        const hook = await createHook(app, recipe, { secret: secretFor(recipe), scope: recipe })
        for (const sample of samples) {
          const { answer, again, body } = await deliver(app, hook, recipe, sample)
          assert.equal(answer.status, 200, `${sample.title}: ${answer.text}`)
          const [id] = await eventIds(app, hook.keyId)
          const event = (await app.store.events.find(id!))!
          const refOf = (ref: string | null) => ref?.replace(`:${HOOK_STAND_IN}:`, `:${hook.keyId}:`) ?? null
          const sourceRef = refOf(sample.sourceRef)?.replace(SHA256, hash('sha256', body)) ?? null
          assert.deepEqual(
            [event.sourceRef, event.channelRef, event.scope, event.route, event.contentType, event.origin],
            [sourceRef, refOf(sample.channelRef), recipe, '/v1/hooks/{hook_id}', sample.contentType, 'intake'],
            sample.title,
          )
          assert.match(event.recipe!, new RegExp(`^${recipe}/\\d+$`))
          assert.deepEqual(Buffer.from((await app.store.events.payload(id!))!), body)
          const second = await again()
          assert.equal(second.status, 200, sample.title)
          const ids = await eventIds(app, hook.keyId)
          if (sample.sourceRef === null)
            assert.notEqual(ids[0], id, `${sample.title}: two equal enquiries are two leads`)
          else assert.equal(ids[0], id, sample.title)
        }
      })
    }

    test('a rebuild of the index gives equal rows, with what each recipe says', async () => {
      const { app } = shared
      await app.indexed()
      const rows = async () => {
        const list = await app.store.inbox.events(TENANT, {}, null, 200)
        return list.events.map(({ event, entry }) => ({ id: event.id, ...entry }))
      }
      const before = await rows()
      assert.ok(before.length > 40, String(before.length))
      assert.deepEqual(
        before.filter(({ unindexed }) => unindexed !== null),
        [],
      )
      assert.ok(before.some(({ contactName }) => contactName === 'Ada Lovelace'))
      await app.store.index.requestRebuild()
      await app.post('{}')
      await app.indexed()
      const after = (await rows()).filter(({ id }) => before.some((one) => one.id === id))
      assert.deepEqual(after, before)
    })

    test('the index shows the contact and text of every sample', async () => {
      const { app } = shared
      const hook = await createHook(app, 'telegram', { secret: secretFor('telegram') })
      const sample = HOOK_SAMPLES.telegram![0]!
      const other = { ...sample, body: sample.body.replace('729001337', '729001338') }
      await deliver(app, hook, 'telegram', other)
      await app.indexed()
      const [id] = await eventIds(app, hook.keyId)
      const entry = await app.store.events.indexEntry((await app.store.events.find(id!))!)
      assert.deepEqual(
        [entry?.contactName, entry?.messageType, entry?.snippet],
        [sample.contactName, sample.messageType, sample.text],
      )
    })

    test('numbers beyond 2^53 that differ in their last digit are two messages', async () => {
      const { app } = shared
      const hook = await createHook(app, 'telegram', { secret: secretFor('telegram') })
      const body = (id: string) => `{"update_id":${id},"message":{"chat":{"id":1},"text":"x"}}`
      const headers = { 'X-Telegram-Bot-Api-Secret-Token': hook.secret }
      const ids = []
      for (const id of ['9007199254740992', '9007199254740993', '9007199254740992'])
        ids.push(idOf(await post(app, hook, body(id), headers)))
      assert.notEqual(ids[0], ids[1])
      assert.equal(ids[0], ids[2])
    })

    test('two bots with equal numbers and one chat are two events in two conversations', async () => {
      const { app } = shared
      const body = '{"update_id":64,"message":{"chat":{"id":65},"text":"to both"}}'
      const bots = [await createHook(app, 'telegram'), await createHook(app, 'telegram')]
      const ids: number[] = []
      for (const bot of bots)
        ids.push(Number(idOf(await post(app, bot, body, { 'X-Telegram-Bot-Api-Secret-Token': bot.secret }))))
      await app.indexed()
      const found = await Promise.all(
        ids.map(async (id) => {
          const event = (await app.store.events.find(id))!
          const entry = await app.store.events.indexEntry(event)
          return { refs: [event.sourceRef, event.channelRef, event.revises], conversation: entry?.conversationId }
        }),
      )
      assert.deepEqual(
        found.map(({ refs }) => refs),
        bots.map(({ keyId }) => [`tg:${keyId}:64`, `tg:${keyId}:65`, null]),
      )
      assert.ok(found[0]?.conversation && found[1]?.conversation)
      assert.notEqual(found[0].conversation, found[1].conversation)
    })

    test('an update that comes in through a rotated address is a duplicate, after two rotations too', async () => {
      const { app } = shared
      const hook = await createHook(app, 'telegram')
      const headers = { 'X-Telegram-Bot-Api-Secret-Token': hook.secret }
      const body = '{"update_id":66,"message":{"chat":{"id":67},"text":"once"}}'
      const first = await post(app, hook, body, headers)
      assert.equal(first.status, 200, first.text)
      const { tokens, hooks } = app.store
      const box = new SecretBox(TEST_SECRETS_KEY)
      const terms = { overlapMs: 3_600_000, expiresAt: undefined }
      let { keyId } = hook
      for (let n = 0; n < 2; n += 1) {
        const old = (await tokens.find(keyId))!
        const rotated = await rotateAddress({ tokens, hooks }, box, old, terms, Date.now())
        assert.ok('opened' in rotated)
        const { opened, record } = rotated
        keyId = record.keyId
        const again = await post(app, { path: HOOK_PATH + opened.hookId }, body, headers)
        assert.deepEqual([again.status, again.json?.id, again.json?.duplicate], [200, first.json?.id, true])
      }
      const late = await post(app, hook, body, headers)
      assert.deepEqual([late.json?.id, late.json?.duplicate], [first.json?.id, true], 'through the old address too')
      assert.deepEqual(await app.store.events.revisions(Number(first.json?.id), 0, 9), [])
    })

    test('other bytes under a known reference are a revision, and the vendor gets its answer all the same', async () => {
      const { app } = shared
      const hook = await createHook(app, 'telegram', { secret: secretFor('telegram') })
      const headers = { 'X-Telegram-Bot-Api-Secret-Token': hook.secret }
      const first = await post(app, hook, '{"update_id":31}', headers)
      const second = await post(app, hook, '{"update_id":31,"edited":true}', headers)
      assert.deepEqual([second.status, second.json?.id, second.json?.conflict], [200, first.json?.id, true])
      const revisions = await app.store.events.revisions(Number(first.json?.id), 0, 9)
      assert.deepEqual(
        revisions.map(({ recipe }) => recipe),
        ['telegram/1'],
      )
    })

    test('a form is handed out as base64: by claims, in the event, and as its bytes', async () => {
      const { app } = shared
      const hook = await createHook(app, 'elementor', { accountId: 70 })
      const body = 'name=Ada&message=Hello+%F0%9F%91%8B&x=%ZZ'
      const answer = await post(app, hook, body, { 'Content-Type': 'application/x-www-form-urlencoded' })
      const id = idOf(answer)
      await app.indexed()
      const reader = await readerOf(app, { accountId: 70 })
      const claimed = await app.send({
        method: 'POST',
        path: '/v1/inbox/claims',
        headers: jsonHeaders(reader.token),
        body: '{}',
      })
      const [event] = claimed.json!.events as { id: number; payload_base64: string; content_type: string }[]
      assert.deepEqual([event?.id, event?.content_type], [id, 'application/x-www-form-urlencoded'])
      assert.equal(Buffer.from(event!.payload_base64, 'base64').toString(), body)
      const shown = (await reader.json(`/v1/inbox/events/${id}`)) as {
        payload: null
        payload_base64: string
        event: { recipe: string }
      }
      assert.deepEqual([shown.payload, Buffer.from(shown.payload_base64, 'base64').toString()], [null, body])
      assert.equal(shown.event.recipe, 'elementor/1')
      const bytes = await reader.get(`/v1/inbox/events/${id}/payload`)
      assert.equal(bytes.text, body)
      assert.equal(bytes.headers['content-type'], 'application/octet-stream')
    })

    test('gzip is unpacked before the signature is checked, and the content type is kept as sent', async () => {
      const { app } = shared
      const hook = await createHook(app, 'github', { secret: 's', accountId: 71 })
      const body = Buffer.from('{"zen":"Keep it logically awesome."}')
      const sample = { ...HOOK_SAMPLES.github![0]!, body: String(body) }
      const { headers } = await signSample('github', sample, {
        secret: 's',
        now: Date.now(),
        publicUrl: '',
        target: '',
      })
      const type = 'application/json; charset=utf-8; boundary=WebKitFormBoundary7MA4YWxkTrZu0gWabcdefgh'
      const answer = await post(app, hook, gzipSync(body), {
        ...headers,
        'Content-Encoding': 'gzip',
        'Content-Type': type,
      })
      assert.equal(answer.status, 200, answer.text)
      const event = (await app.store.events.find(idOf(answer)))!
      assert.equal(event.contentType, type)
      assert.deepEqual(Buffer.from((await app.store.events.payload(event.id))!), body)
    })

    test('a custom recipe reads its requests, answers as it says, and its events are indexed again by it', async () => {
      const { app } = shared
      const hook = await createHook(
        app,
        `title: Shop
bodies: [json]
signature: { kind: none }
source_ref: ['shop:{header:x-shop}:{/order/no}']
channel_ref: ['{/customer}']
index: { contact_name: ['{/customer}'], text: ['{/order/note}'] }
answer: { content_type: text/xml, body: '<ok/>' }
`,
      )
      const send = () =>
        post(app, hook, '{"order":{"no":12345678901234567890,"note":"blue"},"customer":"Grace"}', { 'X-Shop': 'a' })
      const [first, again] = [await send(), await send()]
      for (const answer of [first, again])
        assert.deepEqual([answer.status, answer.text, answer.headers['content-type']], [200, '<ok/>', 'text/xml'])
      const ids = await eventIds(app, hook.keyId)
      assert.equal(ids.length, 1)
      const event = (await app.store.events.find(ids[0]!))!
      assert.deepEqual([event.sourceRef, event.channelRef], ['shop:a:12345678901234567890', 'Grace'])
      for (const isRebuilt of [false, true]) {
        if (isRebuilt) await app.store.index.requestRebuild()
        await app.post('{}')
        await app.indexed()
        const entry = await app.store.events.indexEntry(event)
        assert.deepEqual([entry?.contactName, entry?.snippet], ['Grace', 'blue'])
      }
    })
  })

  describe(`hooks on ${driver.name}: who may send`, () => {
    const shared = sharedApp(driver, { settings: SETTINGS })

    for (const recipe of Object.keys(HOOK_SAMPLES)) {
      if (recipe === 'elementor' || recipe === 'gravity-forms') continue
      test(`401: ${recipe} with a wrong secret or a flipped byte is refused, kept with its reason, and not stored`, async () => {
        const { app } = shared
        const hook = await createHook(app, recipe, { secret: secretFor(recipe) })
        const sample = HOOK_SAMPLES[recipe]![0]!
        const { answer: wrong } = await deliver(app, hook, recipe, sample, `${secretFor(recipe).slice(0, -2)}xx`)
        assert.deepEqual([wrong.status, wrong.json?.error], [401, 'invalid_signature'], wrong.text)
        assert.match(String(wrong.headers['www-authenticate']), /^Hook realm="intray", error="invalid_signature"$/)
        const refusal = await newestRefusal(app, requestId(wrong))
        assert.deepEqual(
          [refusal.code, refusal.keyId, refusal.reason],
          ['invalid_signature', hook.keyId, wrong.json?.message],
        )
        assert.deepEqual(await eventIds(app, hook.keyId), [])
        const { answer } = await deliver(app, hook, recipe, sample)
        assert.equal(answer.status, 200, 'the control: signed with the right one it is stored')
      })
    }

    test('401: an unknown, mistyped or foreign address, and a token in its place, get one answer', async () => {
      const { app } = shared
      const hook = await createHook(app, 'elementor')
      const mistyped = hook.hookId.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'))
      const bearer = app.token
      const bodies = new Set<string>()
      for (const id of [
        'ith_x',
        mistyped,
        bearer,
        bearer.replace('itr_', 'ith_'),
        hook.hookId.replace('ith_', 'itr_'),
        'x'.repeat(2000),
      ]) {
        const answer = await post(app, { path: `/v1/hooks/${id}` }, '{}')
        assert.deepEqual([answer.status, answer.json?.error], [401, 'unknown_hook'], id)
        bodies.add(answer.text.replace(String(answer.json?.request_id), ''))
      }
      assert.equal(bodies.size, 1)
      for (const token of [hook.hookId, hook.hookId.replace('ith_', 'itr_')]) {
        const answer = await app.send({
          method: 'POST',
          path: '/v1/inbox/events',
          body: '{}',
          headers: jsonHeaders(token),
        })
        assert.deepEqual([answer.status, answer.json?.error], [401, 'invalid_token'])
      }
      assert.equal((await post(app, hook, 'a=b', { 'Content-Type': 'application/x-www-form-urlencoded' })).status, 200)
    })

    test('401: a hook that is disabled or expired says so, and is enabled again', async () => {
      const { app } = shared
      const hook = await createHook(app, 'elementor')
      const expired = await createHook(app, 'elementor', { expiresAt: Date.now() - 1000 })
      const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
      assert.equal((await post(app, hook, 'a=b', form)).status, 200)
      assert.equal((await post(app, expired, 'a=b', form)).json?.error, 'hook_expired')
      await app.store.tokens.setActive(hook.keyId, false, Date.now())
      const refused = await until('the change is in effect', async () => {
        const answer = await post(app, hook, 'a=b', form)
        return answer.status === 401 && answer
      })
      assert.equal(refused.json?.error, 'hook_disabled')
      await app.store.tokens.setActive(hook.keyId, true, Date.now())
      await until('it works again', async () => (await post(app, hook, 'a=b', form)).status === 200)
    })

    test('a rotated secret: both are taken during the overlap, then the new one alone', async () => {
      const { app } = shared
      const hook = await createHook(app, 'github', { secret: 'old' })
      const box = new SecretBox(TEST_SECRETS_KEY)
      let n = 0
      const statusWith = async (secret: string) => {
        n += 1
        const sample = { ...HOOK_SAMPLES.github![0]!, body: `{"n":${n}}` }
        return (await deliver(app, hook, 'github', sample, secret)).answer.status
      }
      assert.deepEqual([await statusWith('old'), await statusWith('new')], [200, 401])
      await rotateSecret(app.store.hooks, box, hook.keyId, { secret: 'new', overlapMs: 3_600_000 }, Date.now())
      await until('the new secret is taken', async () => (await statusWith('new')) === 200)
      assert.equal(await statusWith('old'), 200)
      await rotateSecret(app.store.hooks, box, hook.keyId, { secret: 'newest', overlapMs: null }, Date.now())
      await until('the older ones are refused', async () => (await statusWith('new')) === 401)
      assert.deepEqual([await statusWith('old'), await statusWith('newest')], [401, 200])
    })

    test('403: a scope that may not send', async (t) => {
      const app = await startTestApp(t, driver, { settings: { ...SETTINGS, intakeScopes: 'cf' } })
      const hook = await createHook(app, 'elementor', { scope: 'forms' })
      const answer = await post(app, hook, 'a=b', { 'Content-Type': 'application/x-www-form-urlencoded' })
      assert.equal(answer.json?.error, 'forbidden_scope')
    })

    test('503: secrets that do not open are a failure of the service, and nothing is stored', async (t) => {
      const settings = { ...SETTINGS, secretsKey: Buffer.alloc(32, 8).toString('base64') }
      const app = await startTestApp(t, driver, { settings })
      const hook = await createHook(app, 'github', { secret: 's' })
      const answer = await post(app, hook, '{}')
      assert.deepEqual([answer.status, answer.json?.error, answer.json?.stored], [503, 'secrets_unavailable', 'no'])
      const without = await createHook(app, 'elementor')
      const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
      assert.equal((await post(app, without, 'a=b', form)).status, 200, 'a hook without a signature needs no key')
    })
  })

  describe(`hooks on ${driver.name}: challenges and limits`, () => {
    const shared = sharedApp(driver, { settings: SETTINGS })

    test('GET: Meta gets its challenge for the verify token of the hook, and for no other', async () => {
      const { app } = shared
      for (const recipe of ['whatsapp', 'messenger']) {
        const hook = await createHook(app, recipe, { secret: 's' })
        const ask = (token: string, challenge = '1158201444') =>
          app.send({ path: `${hook.path}?hub.mode=subscribe&hub.challenge=${challenge}&hub.verify_token=${token}` })
        const answer = await ask(hook.verifyToken)
        assert.deepEqual(
          [answer.status, answer.text, answer.headers['content-type']],
          [200, '1158201444', 'text/plain'],
        )
        assert.equal((await ask('wrong')).json?.error, 'invalid_signature')
        assert.equal((await ask(hook.verifyToken, 'x'.repeat(MAX_CHALLENGE_UNITS + 1))).status, 401)
        assert.deepEqual(await eventIds(app, hook.keyId), [])
      }
    })

    test('405: GET on a hook without a challenge, and other methods on any', async () => {
      const { app } = shared
      const hook = await createHook(app, 'github')
      const answer = await app.send({ path: hook.path })
      assert.deepEqual([answer.status, answer.headers.allow], [405, 'POST, OPTIONS'])
      assert.equal((await app.send({ method: 'DELETE', path: hook.path })).status, 405)
      assert.equal((await app.send({ path: '/v1/hooks/ith_x' })).json?.error, 'unknown_hook')
    })

    test('POST: Slack gets its challenge if it is signed, and nothing is stored', async () => {
      const { app } = shared
      const hook = await createHook(app, 'slack', { secret: 's' })
      const sample = { ...HOOK_SAMPLES.slack![0]!, body: '{"type":"url_verification","challenge":"3eZbrw1aB"}' }
      const { answer } = await deliver(app, hook, 'slack', sample)
      assert.deepEqual([answer.status, answer.text], [200, '3eZbrw1aB'])
      assert.equal((await deliver(app, hook, 'slack', sample, 'wrong')).answer.status, 401)
      assert.deepEqual(await eventIds(app, hook.keyId), [])
    })

    test('413: above the limit of the hook, which may be above or below that of the service', async () => {
      const { app } = shared
      const small = await createHook(app, 'elementor', { maxBody: 1024 })
      const large = await createHook(app, 'elementor', { maxBody: 3_000_000 })
      const usual = await createHook(app, 'elementor')
      const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
      const sendBytes = (hook: TestHook, bytes: number, chunked = false) =>
        app.send({ method: 'POST', path: hook.path, headers: form, body: `a=${'x'.repeat(bytes - 2)}`, chunked })
      assert.equal((await sendBytes(small, 1024)).status, 200)
      for (const chunked of [false, true]) {
        const answer = await sendBytes(small, 1025, chunked)
        assert.deepEqual([answer.status, answer.json?.max_bytes], [413, 1024])
      }
      assert.equal((await sendBytes(usual, 1_048_577)).json?.max_bytes, 1_048_576)
      assert.equal((await sendBytes(large, 3_000_000)).status, 200)
      const bomb = await post(app, small, gzipSync(`a=${'x'.repeat(100_000)}`), { ...form, 'Content-Encoding': 'gzip' })
      assert.deepEqual([bomb.status, bomb.json?.max_bytes], [413, 1024])
    })

    test('400, 415: a body that is not JSON, or of a kind that the recipe does not take', async () => {
      const { app } = shared
      const hook = await createHook(app, '{"title":"x","bodies":["json"],"signature":{"kind":"none"}}')
      for (const body of ['{"a":', 'name=Ada', '{"a":"\xff"}']) {
        const answer = await post(app, hook, Buffer.from(body, 'latin1'))
        assert.deepEqual([answer.status, answer.json?.error], [400, 'invalid_json'], body)
      }
      const answer = await post(app, hook, '<a/>', { 'Content-Type': 'text/xml' })
      assert.deepEqual([answer.status, answer.json?.error], [415, 'unsupported_media_type'])
      assert.equal((await post(app, hook, '{}', { 'Content-Encoding': 'br' })).json?.error, 'unsupported_encoding')
      const refused = await until('all are kept', async () => {
        const { refusals } = await app.store.hooks.deliveries(TENANT, hook.keyId, 10)
        return refusals.length === 5 && refusals
      })
      assert.equal(refused[0]?.code, 'unsupported_encoding')
      assert.equal((await post(app, hook, '[1]')).status, 200, 'an array is JSON too')
    })

    test('429: above the rate limit of the hook', async () => {
      const { app } = shared
      const hook = await createHook(app, 'elementor', { rateLimit: { requests: 2, windowMs: 3_600_000 } })
      const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
      const statuses = []
      for (let n = 0; n < 3; n += 1) statuses.push((await post(app, hook, `a=${n}`, form)).status)
      assert.deepEqual(statuses, [200, 200, 429])
    })

    test('429: many unknown addresses of hooks are told to stop, and a valid one is never affected', async (t) => {
      const app = await startTestApp(t, driver, { settings: { ...SETTINGS, failedTokenLimit: '2/1h' } })
      const hook = await createHook(app, 'elementor')
      const errors = []
      for (let n = 0; n < 3; n += 1) errors.push((await post(app, { path: `/v1/hooks/ith_${n}` }, '{}')).json?.error)
      assert.deepEqual(errors, ['unknown_hook', 'unknown_hook', 'too_many_failures'])
      assert.equal((await post(app, hook, 'a=b', { 'Content-Type': 'application/x-www-form-urlencoded' })).status, 200)
    })

    test('a large body is read in slices, so that other requests are answered meanwhile', async (t) => {
      const { app } = shared
      const hook = await createHook(app, 'telegram', { secret: 's', maxBody: 20_000_000 })
      const slices = t.mock.method(HookReading.prototype, 'run')
      const body = `{"x":[${'{"a":[1]},'.repeat(200_000)}0],"update_id":77}`
      assert.equal((await post(app, hook, body, { 'X-Telegram-Bot-Api-Secret-Token': 's' })).status, 200)
      const most = Math.max(...slices.mock.calls.map(({ arguments: [bytes] }) => bytes))
      assert.equal(most, SCANNED_BYTES.unitsPerSlice)
      assert.ok(slices.mock.callCount() > 20, `${slices.mock.callCount()} slices`)
    })
  })
}
