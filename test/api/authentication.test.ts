import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { crc32 } from 'node:zlib'
import { mintToken } from '../../src/auth/token.ts'
import { base62 } from '../../src/runtime/id.ts'
import { startTestApp } from '../support/app.ts'
import type { TestAnswer } from '../support/client.ts'
import { drivers } from '../support/drivers.ts'
import { INTAKE_PATHS, rowsStoredDuring } from '../support/intake.ts'
import { exchange, rawRequest } from '../support/raw.ts'
import { sharedApp } from '../support/shared-app.ts'
import { until } from '../support/until.ts'

const FORBIDDEN = '{"ok":false,"error":"forbidden_scope"}'

/** Every address that asks for a token. */
const PROTECTED = [
  ...INTAKE_PATHS.map((path) => ({ method: 'POST', path })),
  { method: 'GET', path: '/api/ping' },
  { method: 'GET', path: '/api/inbox-test' },
] as const

/** A token whose checksum is right. */
function withChecksum(body: string): string {
  return body + base62(crc32(body), 6)
}

/** The body and headers without what differs from answer to answer. */
function comparable({ status, headers, text }: TestAnswer): unknown {
  const { date: _date, 'x-request-id': _id, ...rest } = headers
  return { status, headers: rest, text: text.replace(/"request_id":"[^"]*"/, '"request_id":""') }
}

for (const driver of drivers) {
  for (const { method, path } of PROTECTED) {
    describe(`the token of ${method} ${path} on ${driver.name}`, () => {
      const shared = sharedApp(driver)
      const ask = (authorization?: string | string[]) => {
        const headers = method === 'POST' ? { 'Content-Type': 'application/json' } : {}
        return shared.app.send({
          method,
          path,
          headers: authorization === undefined ? headers : { ...headers, Authorization: authorization },
          ...(method === 'POST' ? { body: '{}' } : {}),
        })
      }

      test('200: the scheme in any case, and any white space after it', async () => {
        const { app } = shared
        for (const value of ['Bearer', 'bearer', 'BEARER', 'bEaReR', 'Bearer ', 'Bearer\t', 'Bearer \t ']) {
          assert.equal((await ask(`${value} ${app.token}`)).status, 200, JSON.stringify(value))
        }
      })

      test('400: two Authorization headers, equal or not', async () => {
        const good = `Bearer ${shared.app.token}`
        for (const pair of [
          [good, good],
          [good, 'Bearer x'],
          ['Basic eA==', good],
        ]) {
          const answer = await ask(pair)
          assert.equal(answer.status, 400)
          assert.equal(answer.json?.error, 'invalid_request')
        }
      })

      test('401 missing_token: no header, another scheme, or nothing after the scheme', async () => {
        const { token } = shared.app
        const values = [undefined, '', 'Bearer', 'Bearer ', 'Bearer\t', 'Basic dXNlcjpwYXNz', `Token ${token}`, token]
        for (const value of [...values, `Bearer:${token}`, `Bearer${token}`, `Bearers ${token}`, `Digest ${token}`]) {
          const answer = await ask(value)
          assert.equal(answer.status, 401, String(value))
          assert.equal(answer.json?.error, 'missing_token', String(value))
          assert.equal(answer.json?.retryable, false)
          assert.equal(answer.headers['www-authenticate'], 'Bearer realm="intray"', 'a challenge without an error')
        }
      })

      test('401 invalid_token: unknown, malformed, mistyped and a wrong secret get one answer', async () => {
        const { token } = shared.app
        const [prefix, keyId, secret = ''] = token.split('_')
        const wrongSecret = withChecksum(`${prefix}_${keyId}_${[...secret.slice(0, 30)].reverse().join('')}`)
        const wrong = [
          mintToken().token,
          wrongSecret,
          `${token.slice(0, -1)}${token.endsWith('a') ? 'b' : 'a'}`,
          token.slice(0, -1),
          `${token}x`,
          token.toUpperCase(),
          `${token} ${token}`,
          withChecksum(`ITR_${keyId}_${secret.slice(0, 30)}`),
          'nonsense',
          'itr_',
          '"',
          'x'.repeat(5000),
          `${prefix}__${secret}`,
          '\u00e9\u00ff',
          '../../etc/passwd',
          "' OR 1=1 --",
        ]
        const first = await ask(`Bearer ${wrong[0]}`)
        assert.equal(first.status, 401)
        assert.equal(first.json?.error, 'invalid_token')
        assert.match(String(first.headers['www-authenticate']), /^Bearer realm="intray", error="invalid_token", /)
        for (const value of wrong) {
          assert.deepEqual(comparable(await ask(`Bearer ${value}`)), comparable(first), value.slice(0, 60))
        }
      })

      test('401 token_disabled, and only with the whole secret', async () => {
        const { app } = shared
        const token = await app.createToken()
        const [, keyId = '', secret = ''] = token.split('_')
        await app.store.tokens.setActive(keyId, false, Date.now())
        const answer = await ask(`Bearer ${token}`)
        assert.equal(answer.status, 401)
        assert.equal(answer.json?.error, 'token_disabled')
        assert.match(String(answer.headers['www-authenticate']), /error="invalid_token"/)
        const guess = withChecksum(`itr_${keyId}_${[...secret.slice(0, 30)].reverse().join('')}`)
        assert.equal((await ask(`Bearer ${guess}`)).json?.error, 'invalid_token')
      })

      test('401 token_expired, and only with the whole secret', async () => {
        const token = await shared.app.createToken({ expiresAt: Date.now() - 1 })
        const [, keyId, secret = ''] = token.split('_')
        const answer = await ask(`Bearer ${token}`)
        assert.equal(answer.status, 401)
        assert.equal(answer.json?.error, 'token_expired')
        const guess = withChecksum(`itr_${keyId}_${[...secret.slice(0, 30)].reverse().join('')}`)
        assert.equal((await ask(`Bearer ${guess}`)).json?.error, 'invalid_token')
      })

      test('a token that is disabled while it is in use stops working, and works again when enabled', async () => {
        const { app } = shared
        const token = await app.createToken()
        const keyId = token.split('_')[1] ?? ''
        assert.equal((await ask(`Bearer ${token}`)).status, 200)
        await app.store.tokens.setActive(keyId, false, Date.now())
        await until('the token is refused', async () => (await ask(`Bearer ${token}`)).json?.error === 'token_disabled')
        await app.store.tokens.setActive(keyId, true, Date.now())
        await until('the token works again', async () => (await ask(`Bearer ${token}`)).status === 200)
      })

      test('a rotated token is disabled at once, or works until the overlap is over', async () => {
        const { app } = shared
        const now = Date.now()
        for (const overlapMs of [null, 60_000]) {
          const old = await app.createToken()
          const { keyId, token, hash } = mintToken()
          const rotatedFrom = old.split('_')[1]!
          const successor = { keyId, hash, accountId: 7, companyId: 42, scope: 'cf', label: '', expiresAt: null }
          await app.store.tokens.rotate(
            { ...successor, createdAt: now, rotatedFrom },
            overlapMs === null ? null : now + overlapMs,
            now,
          )
          assert.equal((await ask(`Bearer ${token}`)).status, 200, 'the new one works')
          const answer = await ask(`Bearer ${old}`)
          if (overlapMs === null) assert.equal(answer.json?.error, 'token_disabled')
          else assert.equal(answer.status, 200, 'the old one still works')
        }
      })

      test('nothing is stored for a request whose token is refused', async () => {
        const rows = await rowsStoredDuring(shared.app, async () => {
          await ask('Bearer nonsense')
          await ask()
        })
        assert.deepEqual(rows, [])
      })

      test('no answer repeats the token, and no log line holds it', async () => {
        const { app } = shared
        const wrong = withChecksum('itr_0123456789_SECRETSECRETSECRETSECRETSECRET')
        const answers = [await ask(`Bearer ${app.token}`), await ask(`Bearer ${wrong}`), await ask([wrong, app.token])]
        for (const { text, headers } of answers) {
          assert.doesNotMatch(text + JSON.stringify(headers), /SECRET/)
          assert.ok(!(text + JSON.stringify(headers)).includes(app.token))
        }
        await until('the requests are logged', () => app.log.filter((line) => line.msg === 'request').length >= 3)
        assert.doesNotMatch(JSON.stringify(app.log), /SECRET/)
        assert.ok(!JSON.stringify(app.log).includes(app.token))
      })
    })
  }

  describe(`the scope of a token on ${driver.name}`, () => {
    for (const path of INTAKE_PATHS) {
      describe(`POST ${path}`, () => {
        const shared = sharedApp(driver)
        const restricted = sharedApp(driver, { settings: { intakeScopes: 'cf' } })

        const post = (app: typeof shared.app, token: string) =>
          app.send({
            method: 'POST',
            path,
            headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
            body: '{}',
          })

        test('200: every scope but processor may send', async () => {
          for (const scope of ['', 'cf', 'bot', 'processor2', 'processo', 'x.processor', 'processor:cf']) {
            const token = await shared.app.createToken({ scope })
            assert.equal((await post(shared.app, token)).status, 200, scope)
          }
        })

        test('403: a processor token may not send, in exactly these words', async () => {
          const token = await shared.app.createToken({ scope: 'processor' })
          const rows = await rowsStoredDuring(shared.app, async () => {
            const answer = await post(shared.app, token)
            assert.equal(answer.status, 403)
            assert.equal(answer.text, FORBIDDEN)
            assert.equal(answer.headers['content-length'], String(FORBIDDEN.length))
            assert.match(
              String(answer.headers['www-authenticate']),
              /^Bearer realm="intray", error="insufficient_scope", (scope="[^"]+", )?error_description="[^"]+"$/,
            )
          })
          assert.deepEqual(rows, [])
        })

        test('200: with a list, the scopes on it may send', async () => {
          assert.equal((await post(restricted.app, restricted.app.token)).status, 200)
        })

        test('403: with a list, every other scope may not, nor a token without one', async () => {
          for (const scope of ['bot', '', 'c', 'cf2', 'cf.x', 'processor']) {
            const answer = await post(restricted.app, await restricted.app.createToken({ scope }))
            assert.equal(answer.status, 403, scope)
            assert.equal(answer.text, FORBIDDEN, scope)
          }
        })
      })
    }

    test('ping and the tester answer for every scope, list or not', async (t) => {
      const app = await startTestApp(t, driver, { settings: { intakeScopes: 'cf' } })
      for (const scope of ['', 'bot', 'processor']) {
        const token = await app.createToken({ scope })
        for (const path of ['/api/ping', '/api/inbox-test']) {
          const answer = await app.send({ path, headers: { Authorization: `Bearer ${token}` } })
          assert.equal(answer.status, 200)
          assert.equal(answer.json?.scope, scope)
        }
      }
    })

    test('a list of several scopes is taken whole', async (t) => {
      const app = await startTestApp(t, driver, { settings: { intakeScopes: 'bot, form.v2' } })
      for (const [scope, status] of [
        ['bot', 200],
        ['form.v2', 200],
        ['form', 403],
        ['cf', 403],
      ] as const) {
        const token = await app.createToken({ scope })
        const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
        const answer = await app.send({ method: 'POST', path: '/v1/inbox/events', headers, body: '{}' })
        assert.equal(answer.status, status, scope)
      }
    })

    test('processor on the list still may not send', async (t) => {
      const app = await startTestApp(t, driver, { settings: { intakeScopes: 'processor,cf' } })
      const headers = {
        Authorization: `Bearer ${await app.createToken({ scope: 'processor' })}`,
        'Content-Type': 'application/json',
      }
      const answer = await app.send({ method: 'POST', path: '/v1/inbox/events', headers, body: '{}' })
      assert.equal(answer.status, 403)
    })
  })

  describe(`addresses without a token on ${driver.name}`, () => {
    test('health and documentation answer without one and with any', async (t) => {
      const app = await startTestApp(t, driver)
      for (const path of ['/livez', '/readyz', '/openapi.yaml', '/openapi.json', '/docs']) {
        for (const headers of [[], ['Authorization: Bearer nonsense'], ['Authorization: x', 'Authorization: y']]) {
          const answer = await exchange(app.port, 'GET', path, rawRequest({ method: 'GET', target: path, headers }))
          assert.equal(answer.status, 200, path)
        }
      }
    })
  })
}
