import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { NO_RETENTION } from '../../src/model/retention.ts'
import type { StoredRefusal } from '../../src/model/refusal.ts'
import { startTestApp, type TestApp } from '../support/app.ts'
import { TestClock } from '../support/clock.ts'
import { drivers } from '../support/drivers.ts'
import { INTAKE_PATHS, jsonHeaders, postTo } from '../support/intake.ts'
import { sharedApp } from '../support/shared-app.ts'
import { until } from '../support/until.ts'

const TENANT = { accountId: 7, companyId: 42 }
const KEPT_BYTES = 64 * 1024

async function refusalsOf(app: TestApp, tenant = TENANT): Promise<StoredRefusal[]> {
  return app.store.refusals.list(tenant, Number.MAX_SAFE_INTEGER, 1000)
}

/** The refusal of a request, once it is written. */
function refusalOf(app: TestApp, requestId: unknown, tenant = TENANT): Promise<StoredRefusal> {
  return until('the refusal is kept', async () =>
    (await refusalsOf(app, tenant)).find((refusal) => refusal.requestId === requestId),
  )
}

for (const driver of drivers) {
  for (const path of INTAKE_PATHS) {
    describe(`refusals of POST ${path} on ${driver.name}`, () => {
      const shared = sharedApp(driver, { settings: { maxBodyBytes: '200000' } })

      const CASES: Record<
        string,
        { code: string; body: string; headers?: Record<string, string>; processor?: boolean; kept?: string }
      > = {
        '400 invalid_json': { code: 'invalid_json', body: '{"name":"Ada", oops}' },
        '403 forbidden_scope': { code: 'forbidden_scope', body: '{"name":"Ada"}', processor: true },
        '413 payload_too_large': { code: 'payload_too_large', body: `{"text":"${'x'.repeat(250_000)}"}` },
        '415 unsupported_media_type': {
          code: 'unsupported_media_type',
          body: 'name=Ada',
          headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        },
        '415 unsupported_encoding': {
          code: 'unsupported_encoding',
          body: 'compressed somehow',
          headers: { 'Content-Encoding': 'br' },
          kept: '',
        },
        '422 invalid_payload': { code: 'invalid_payload', body: '{"source_ref":1.2}' },
      }
      for (const [name, { code, body, headers = {}, processor = false, kept = body }] of Object.entries(CASES)) {
        for (const chunked of [false, true]) {
          test(`${name}, ${chunked ? 'chunked' : 'fixed length'}: kept with its reason, token, headers and body`, async () => {
            const { app } = shared
            const token = processor ? await app.createToken({ scope: 'processor' }) : app.token
            const secrets = {
              Cookie: 'session=COOKIESECRET',
              'X-Api-Key': 'KEYSECRET',
              'Proxy-Authorization': 'PROXYSECRET',
            }
            const sent: Record<string, string> = {
              ...jsonHeaders(token),
              'User-Agent': 'Plugin/1.0',
              ...secrets,
              ...headers,
            }
            const answer = await app.send({ method: 'POST', path, headers: sent, body, chunked })
            assert.equal(String(answer.status), name.slice(0, 3))
            const refusal = await refusalOf(app, answer.headers['x-request-id'])
            assert.equal(refusal.code, code)
            assert.equal(refusal.keyId, token.split('_')[1])
            assert.equal(refusal.route, path)
            assert.deepEqual([refusal.accountId, refusal.companyId], [7, 42])
            assert.equal(refusal.headers['user-agent'], 'Plugin/1.0')
            assert.equal(refusal.headers['content-type'], sent['Content-Type'])
            assert.doesNotMatch(JSON.stringify(refusal.headers), /SECRET|authorization|cookie|x-api-key|itr_/i)
            assert.equal(Buffer.from(refusal.body).toString(), kept.slice(0, KEPT_BYTES))
          })
        }
      }

      test('of a large body the first 64 KiB are kept, and how large it was', async () => {
        const { app } = shared
        const body = `{"source_ref":0.5,"text":"${'x'.repeat(100_000)}"}`
        const answer = await postTo(app, path, body)
        assert.equal(answer.status, 422)
        const refusal = await refusalOf(app, answer.headers['x-request-id'])
        assert.equal(Buffer.from(refusal.body).toString(), body.slice(0, KEPT_BYTES))
        assert.equal(refusal.bodySize, body.length)
      })

      test('a body that arrived compressed is kept as it was before compression', async () => {
        const { app } = shared
        const body = '{"source_ref":0.5}'
        const answer = await postTo(app, path, gzipSync(body), { 'Content-Encoding': 'gzip' })
        assert.equal(answer.status, 422)
        const refusal = await refusalOf(app, answer.headers['x-request-id'])
        assert.equal(Buffer.from(refusal.body).toString(), body)
      })

      test('a token inside a refused body or header is masked', async () => {
        const { app } = shared
        const secret = app.token.split('_')[2]!
        const body = `{"source_ref":1.5,"debug":"Bearer ${app.token}","again":["${app.token}"],"rest":"kept"}`
        const headers = { 'User-Agent': `Plugin ${app.token}`, 'Content-Type': `application/json; x=${app.token}` }
        const answer = await postTo(app, path, body, headers)
        assert.equal(answer.status, 422)
        const refusal = await refusalOf(app, answer.headers['x-request-id'])
        const kept = Buffer.from(refusal.body).toString()
        assert.ok(!kept.includes(secret) && !JSON.stringify(refusal.headers).includes(secret))
        assert.ok(kept.endsWith('"rest":"kept"}'), 'the rest of it is kept')
        assert.equal(kept.length, body.length)
      })

      test('a token in UTF-16 or in gzip that was not unpacked is masked', async () => {
        const { app } = shared
        const secret = app.token.split('_')[2]!
        const body = `{"debug":"${app.token}","rest":"kept"}`
        const large = gzipSync(`{"debug":"${app.token}","rest":"${'x'.repeat(250_000)}"}`)
        const gzip = { 'Content-Encoding': 'gzip' }
        for (const [status, bytes, headers] of [
          [400, Buffer.from(body, 'utf16le'), {}],
          [413, large, gzip],
          [415, gzipSync(body), { ...gzip, 'Content-Type': 'text/html' }],
          [400, gzipSync(body).subarray(0, -8), gzip],
          [400, gzipSync(body), {}],
        ] as const) {
          const answer = await postTo(app, path, bytes, headers)
          assert.equal(answer.status, status)
          const { body: kept } = await refusalOf(app, answer.headers['x-request-id'])
          const text = Buffer.from(kept).toString().replaceAll('\0', '')
          assert.match(text, /"debug":"itr_x+","rest":"/)
          assert.ok(!text.includes(secret.slice(0, 8)))
        }
      })

      test('a token cut by the end of what is kept is masked too', async () => {
        const { app } = shared
        const secret = app.token.split('_')[2]!
        for (const shown of [20, 25, 40]) {
          const body = `{"source_ref":1.5,"pad":"${'x'.repeat(KEPT_BYTES - 25 - shown)}${app.token}"}`
          const answer = await postTo(app, path, body)
          assert.equal(answer.status, 422)
          const refusal = await refusalOf(app, answer.headers['x-request-id'])
          assert.equal(refusal.body.length, KEPT_BYTES)
          assert.ok(!Buffer.from(refusal.body).toString().includes(secret.slice(0, 4)))
        }
      })

      test('bytes that are not text are kept as they were', async () => {
        const { app } = shared
        const body = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x7b])
        const answer = await postTo(app, path, body)
        assert.equal(answer.status, 400)
        const refusal = await refusalOf(app, answer.headers['x-request-id'])
        assert.ok(Buffer.from(refusal.body).equals(body))
      })

      test('none is kept for a request whose token was refused, nor for one that named no use', async () => {
        const { app } = shared
        const unkept = [
          await postTo(app, path, '{}', { Authorization: 'Bearer nonsense' }),
          await postTo(app, path, '{}', { Authorization: `Bearer ${await app.createToken({ expiresAt: 1 })}` }),
          await app.send({ method: 'POST', path, headers: { 'Content-Type': 'application/json' }, body: '{' }),
          await app.send({ method: 'PUT', path, headers: { Authorization: `Bearer ${app.token}` } }),
          await postTo(app, '/nowhere', '{}'),
          await postTo(app, path, '{}', { 'Idempotency-Key': 'x'.repeat(300) }),
        ]
        assert.deepEqual(
          unkept.map(({ status }) => status),
          [401, 401, 401, 405, 404, 400],
        )
        const last = await postTo(app, path, 'not json')
        await refusalOf(app, last.headers['x-request-id'])
        const kept = new Set((await refusalsOf(app)).map(({ requestId }) => requestId))
        for (const { headers } of unkept) assert.ok(!kept.has(String(headers['x-request-id'])))
      })

      test('a tenant sees its own alone', async () => {
        const { app } = shared
        const tenant = { accountId: 9, companyId: 99 }
        const token = await app.createToken(tenant)
        const answer = await postTo(app, path, 'not json', { Authorization: `Bearer ${token}` })
        const refusal = await refusalOf(app, answer.headers['x-request-id'], tenant)
        assert.equal(refusal.companyId, 99)
        assert.equal((await refusalsOf(app, tenant)).length, 1)
        assert.ok((await refusalsOf(app)).every(({ accountId }) => accountId === 7))
      })
    })
  }

  describe(`the bounds of refusals on ${driver.name}`, () => {
    test('by count: the newest of each tenant are kept', async (t) => {
      const app = await startTestApp(t, driver, { settings: { refusalsMaxCount: '3' } })
      const other = { accountId: 8, companyId: 42 }
      const token = await app.createToken(other)
      const first = await app.post('not json', { Authorization: `Bearer ${token}` })
      await refusalOf(app, first.headers['x-request-id'], other)
      const ids: unknown[] = []
      for (let count = 0; count < 6; count += 1) {
        const answer = await app.post('not json')
        ids.push(answer.headers['x-request-id'])
        await refusalOf(app, ids.at(-1))
      }
      assert.deepEqual(
        (await refusalsOf(app)).map(({ requestId }) => requestId),
        ids.slice(-3).toReversed(),
      )
      assert.equal((await refusalsOf(app, other)).length, 1, 'none pushes out those of another')
    })

    test('by age: retention deletes the old ones, and the setting is their age where no rule says another', async (t) => {
      const clock = new TestClock()
      const settings = { refusalsMaxAge: '1h', retentionEvery: '1s' } as const
      const app = await startTestApp(t, driver, { clock, settings })
      const other = { accountId: 8, companyId: 42 }
      const kept = { ...NO_RETENTION, refusals: 1 } as const
      await app.store.retention.setRule({ ...kept, tenant: other })
      const theirs = await app.createToken(other)
      await app.post('not json', { Authorization: `Bearer ${theirs}` })
      const old = await app.post('not json')
      await refusalOf(app, old.headers['x-request-id'])
      clock.advance(3_600_001)
      const young = await app.post('not json')
      assert.equal((await refusalOf(app, young.headers['x-request-id'])).receivedAt, clock.now())
      await until('the old one is gone', async () => (await refusalsOf(app)).length === 1)
      assert.equal((await refusalsOf(app))[0]!.requestId, young.headers['x-request-id'])
      assert.equal((await refusalsOf(app, other)).length, 1, 'kept for a day')
    })

    test('a count of zero keeps none', async (t) => {
      const app = await startTestApp(t, driver, { settings: { refusalsMaxCount: '0' } })
      for (let count = 0; count < 3; count += 1) assert.equal((await app.post('not json')).status, 400)
      await app.post('{}')
      assert.deepEqual(await refusalsOf(app), [])
    })

    test('a store that cannot keep them costs no answer and no message', async (t) => {
      const app = await startTestApp(t, driver, {
        wrapStore: (store) => ({
          ...store,
          refusals: { ...store.refusals, add: () => Promise.reject(new Error('disk full')) },
        }),
      })
      assert.equal((await app.post('not json')).status, 400)
      assert.equal((await app.post('{}')).status, 200)
    })

    test('an answer does not wait until its refusal is kept', async (t) => {
      const gate = Promise.withResolvers<void>()
      const app = await startTestApp(t, driver, {
        wrapStore: (store) => ({
          ...store,
          refusals: {
            ...store.refusals,
            add: async (...args) => {
              await gate.promise
              return store.refusals.add(...args)
            },
          },
        }),
      })
      const answers = await Promise.all(Array.from({ length: 5 }, () => app.post('not json')))
      assert.ok(answers.every(({ status }) => status === 400))
      assert.deepEqual(await refusalsOf(app), [])
      gate.resolve()
      for (const { headers } of answers) await refusalOf(app, headers['x-request-id'])
    })
  })
}
