import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { before, describe, test } from 'node:test'
import { ROUTES, type Route } from '../../src/http/routes.ts'
import { anyDriver } from '../support/drivers.ts'
import { INTAKE_PATHS, idOf, jsonHeaders, postTo } from '../support/intake.ts'
import { exchange, postHeaders, rawRequest } from '../support/raw.ts'
import {
  createSampleData,
  hasEnd,
  ignoresQuery,
  isRepeatable,
  type SampleData,
  sampleRequest,
} from '../support/samples.ts'
import { sharedApp } from '../support/shared-app.ts'
import { until } from '../support/until.ts'

const UNKNOWN_PATHS = [
  '/v1',
  '/v1/inbox',
  '/v1/inbox/event',
  '/v1/inbox/events/1/2',
  '/v1/inbox/events/1/payload/2',
  '/api',
  '/api/pin',
  '/API/PING',
]
const AMISS = ['/v1/inbox/events//', '//v1/inbox/events', '/v1//inbox/events', '/api/ping//']

/** What Allow has to say for the path of a route. */
function allowOf({ path }: Route): string {
  const methods = ROUTES.filter((route) => route.path === path).map(({ method }) => method)
  const get = methods.includes('GET') ? ['GET', 'HEAD'] : []
  return [
    ...get,
    ...methods
      .filter((method) => method !== 'GET')
      .sort()
      .reverse(),
    'OPTIONS',
  ].join(', ')
}

/** The same address, written in other ways. */
function spellings(path: string, ignoringQuery: boolean): string[] {
  // A path of nothing but a slash has no trailing one.
  if (path === '/') return ['http://intray.test', 'http://intray.test:8080/', ignoringQuery ? '/?a=b' : '/?']
  const encoded = path.replace(/[a-z0-9](?=[^/]*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`)
  const query = ignoringQuery ? '?a=b' : '?'
  return [
    `${path}/`,
    encoded,
    `${encoded}/`,
    `http://intray.test${path}`,
    `http://intray.test:8080${path}/${query}`,
    `${path}${query}`,
  ]
}

for (const driver of anyDriver) {
  describe(`addresses and methods on ${driver.name}`, () => {
    const shared = sharedApp(driver)
    let data: SampleData
    before(async () => {
      data = await createSampleData(shared.app)
    })
    const requestTo = (route: Route) => sampleRequest(shared.app, data, route)

    for (const route of ROUTES.filter(isRepeatable)) {
      test(`200: every spelling of ${route.method} ${route.path} is the same route`, async () => {
        const { app } = shared
        const { path, headers, ...sample } = requestTo(route)
        for (const target of spellings(path, ignoresQuery(route))) {
          const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
          const request = rawRequest({ ...sample, target, headers: lines, host: `127.0.0.1:${app.port}` })
          const answer = await exchange(app.port, route.method, path, request)
          assert.equal(answer.status, 200, target)
        }
      })
    }

    for (const route of ROUTES) {
      describe(`${route.method} ${route.path}`, () => {
        test('204: OPTIONS names the methods, without a body and without a length', async () => {
          const answer = await shared.app.send({ method: 'OPTIONS', path: requestTo(route).path })
          assert.equal(answer.status, 204)
          assert.equal(answer.headers.allow, allowOf(route))
          assert.equal(answer.headers['content-length'], undefined)
          assert.equal(answer.headers['transfer-encoding'], undefined)
          assert.equal(answer.text, '')
        })

        test('204: OPTIONS of every spelling of the address', async () => {
          const { path } = requestTo(route)
          for (const target of spellings(path, true)) {
            const request = rawRequest({ method: 'OPTIONS', target })
            const answer = await exchange(shared.app.port, 'OPTIONS', path, request)
            assert.equal(answer.status, 204, target)
            assert.equal(answer.headers.allow, allowOf(route))
          }
        })

        test('405: every other method, token or not, with the methods it takes', async () => {
          const { app } = shared
          const { path } = requestTo(route)
          const known = allowOf(route).split(', ')
          for (const method of METHODS.filter((one) => one !== 'CONNECT' && !known.includes(one))) {
            const answer = await app.send({ method, path, headers: { Authorization: 'Bearer nonsense' } })
            assert.equal(answer.status, 405, method)
            assert.equal(answer.headers.allow, allowOf(route), method)
            if (method !== 'HEAD') assert.equal(answer.json?.error, 'method_not_allowed', method)
          }
        })

        test('405: every spelling of the address', async () => {
          const { path } = requestTo(route)
          for (const target of spellings(path, true)) {
            const request = rawRequest({ method: 'PATCH', target })
            const answer = await exchange(shared.app.port, 'PATCH', path, request)
            assert.equal(answer.status, 405, target)
            assert.equal(answer.headers.allow, allowOf(route))
          }
        })

        test('405: whatever body the request has', async () => {
          const bodies = [
            ['application/json', '{not json'],
            ['application/json', ''],
            ['text/xml', '<a/>'],
            ['nonsense', 'x'],
            ['application/json', `"${'x'.repeat(70_000)}"`],
          ] as const
          for (const [contentType, body] of bodies) {
            for (const chunked of [false, true]) {
              const headers = { 'Content-Type': contentType }
              const { path } = requestTo(route)
              const answer = await shared.app.send({ method: 'PUT', path, headers, body, chunked })
              assert.equal(answer.status, 405, `${contentType} ${body.slice(0, 20)}`)
            }
          }
        })
      })
    }

    for (const route of ROUTES.filter((one) => one.method === 'GET' && hasEnd(one))) {
      test(`HEAD ${route.path} answers like GET, without the body`, async () => {
        const { app } = shared
        // Pushes to the endpoint of the samples are tried again meanwhile, and the list of attempts grows.
        const { get, head } = await until('nothing has changed between two reads', async () => {
          const get = await app.send(requestTo(route))
          const head = await app.send({ ...requestTo(route), method: 'HEAD' })
          const again = await app.send(requestTo(route))
          return again.headers['content-length'] === get.headers['content-length'] && { get, head }
        })
        assert.equal(get.status, 200)
        const { date: _d1, 'x-request-id': _i1, ...expected } = get.headers
        const { date: _d2, 'x-request-id': _i2, ...headers } = head.headers
        assert.equal(head.status, get.status)
        assert.deepEqual(headers, expected)
        assert.equal(head.text, '')
      })
    }

    test('HEAD answers an error like GET, without the body', async () => {
      const { app } = shared
      for (const path of ['/api/ping', '/nowhere', '/api/inbox-test?token=nonsense']) {
        const get = await app.send({ path })
        const head = await app.send({ method: 'HEAD', path })
        assert.equal(head.status, get.status, path)
        assert.equal(head.headers['content-length'], get.headers['content-length'])
        assert.equal(head.headers['www-authenticate'], get.headers['www-authenticate'])
        assert.equal(head.text, '')
      }
    })

    test('404: an unknown address, for every method and with any token and body', async () => {
      const { app } = shared
      for (const path of [...UNKNOWN_PATHS, ...AMISS]) {
        for (const method of ['GET', 'POST', 'PUT', 'OPTIONS', 'PROPFIND']) {
          for (const body of ['{}', '{not json']) {
            const request = rawRequest({ method, target: path, headers: postHeaders(app.token), body })
            const answer = await exchange(app.port, method, '/nowhere', request)
            assert.equal(answer.status, 404, `${method} ${path} ${body}`)
            assert.equal(answer.json?.error, 'not_found')
            assert.equal(answer.json?.retryable, false)
          }
        }
      }
    })

    test('404: a large body to an unknown address is not read', async () => {
      const { app } = shared
      for (const chunked of [false, true]) {
        const body = Buffer.alloc(2_000_000, 'x')
        const headers = { 'Content-Type': 'application/json' }
        const answer = await app.send({ method: 'POST', path: '/nowhere', headers, body, chunked })
        assert.equal(answer.status, 404)
      }
    })

    test('404: every unknown address gets the same answer, but for the route it resembles', async () => {
      const answers = await Promise.all(UNKNOWN_PATHS.map((path) => shared.app.send({ path })))
      const bodies = answers.map(({ text, json }) =>
        text.replace(String(json?.request_id), '').replace(/ Did you mean (GET|POST) [a-z0-9_/{}-]+\?/, ''),
      )
      assert.equal(new Set(bodies).size, 1)
    })

    test('400: an address that cannot be decoded', async () => {
      const { app } = shared
      for (const target of ['/api/%zz', '/v1/inbox/events%', '/%ff']) {
        const answer = await exchange(app.port, 'GET', '/nowhere', rawRequest({ method: 'GET', target }))
        assert.equal(answer.status, 400, target)
        assert.equal(answer.json?.error, 'invalid_request')
      }
    })

    test('204: OPTIONS * tells the methods of the service', async () => {
      const answer = await exchange(shared.app.port, 'OPTIONS', '*', rawRequest({ method: 'OPTIONS', target: '*' }))
      assert.equal(answer.status, 204)
      assert.equal(answer.headers.allow, 'GET, HEAD, POST, OPTIONS')
    })

    test('every answer carries an X-Request-Id of its own, and an error the same one in its body', async () => {
      const { app } = shared
      const answers = await Promise.all(['/livez', '/api/ping', '/nowhere', '/docs'].map((path) => app.send({ path })))
      const ids = answers.map(({ headers }) => headers['x-request-id'])
      assert.equal(new Set(ids).size, ids.length)
      for (const { json, headers } of answers) {
        if (json?.ok === false) assert.equal(json.request_id, headers['x-request-id'])
      }
    })

    test('a request cannot choose its X-Request-Id', async () => {
      const answer = await shared.app.send({ path: '/livez', headers: { 'X-Request-Id': 'mine' } })
      assert.notEqual(answer.headers['x-request-id'], 'mine')
    })

    test('no answer has a CORS header, whatever the request says', async () => {
      const { app } = shared
      const origin = {
        Origin: 'https://shop.example',
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization, content-type',
      }
      const paths = [...ROUTES.map((route) => requestTo(route).path), '/nowhere']
      for (const path of paths) {
        for (const method of ['GET', 'POST', 'OPTIONS', 'HEAD', 'DELETE']) {
          const headers = { ...jsonHeaders(app.token), ...origin }
          const answer = await app.send({ method, path, headers, ...(method === 'POST' ? { body: '{}' } : {}) })
          const names = Object.keys(answer.headers)
          assert.deepEqual(
            names.filter((name) => name.startsWith('access-control-')),
            [],
            `${method} ${path}`,
          )
        }
      }
    })

    test('no answer says which software it runs on', async () => {
      for (const path of ['/livez', '/nowhere', '/docs']) {
        const { headers } = await shared.app.send({ path })
        assert.equal(headers.server, undefined)
        assert.equal(headers['x-powered-by'], undefined)
      }
    })

    for (const path of INTAKE_PATHS) {
      test(`unknown query parameters of POST ${path} are ignored, a token among them`, async () => {
        const { app } = shared
        assert.equal((await postTo(app, `${path}?a=1&token=nonsense&source_ref=x`, '{}')).status, 200)
        const headers = { 'Content-Type': 'application/json' }
        const answer = await app.send({ method: 'POST', path: `${path}?token=${app.token}`, headers, body: '{}' })
        assert.equal(answer.status, 401)
        assert.equal(answer.json?.error, 'missing_token')
      })

      test(`a post by any spelling of ${path} is kept under the path of the table`, async () => {
        const { app } = shared
        for (const target of spellings(path, true)) {
          const request = rawRequest({ target, headers: postHeaders(app.token), body: '{}' })
          const answer = await exchange(app.port, 'POST', path, request)
          assert.equal((await app.store.events.find(idOf(answer)))?.route, path, target)
        }
      })
    }
  })
}
