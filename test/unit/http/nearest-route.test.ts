import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createNearestRoute } from '../../../src/http/nearest-route.ts'
import { ROUTES } from '../../../src/http/routes.ts'
import { anyText } from '../../support/text.ts'

const nearestRoute = createNearestRoute(ROUTES)

test('a path with a part too many, too few or misspelt is near its route', () => {
  for (const [path, meant] of [
    ['/v1/inbox/event', 'GET /v1/inbox/events'],
    ['/v1/events', 'GET /v1/inbox/events'],
    ['/inbox/events', 'GET /v1/inbox/events'],
    ['/api/v1/inbox/events', 'GET /v1/inbox/events'],
    ['/v2/inbox/events', 'GET /v1/inbox/events'],
    ['/ping', 'GET /api/ping'],
    ['/ready', 'GET /readyz'],
    ['/api/docs', 'GET /docs'],
    ['/v1/inbox/events/7/payloads', 'GET /v1/inbox/events/{id}/payload'],
    ['/v1/inbox/events/7/nothing', 'GET /v1/inbox/events/{id}'],
    ['/v1/inbox/claim', 'POST /v1/inbox/claims'],
  ] as const) {
    assert.equal(nearestRoute('GET', path), meant, path)
  }
})

test('among equals the route of the same method is nearest', () => {
  assert.equal(nearestRoute('POST', '/v1/inbox/event'), 'POST /v1/inbox/events')
  assert.equal(nearestRoute('HEAD', '/v1/inbox/event'), 'GET /v1/inbox/events')
  assert.equal(nearestRoute('PUT', '/v1/inbox/event'), 'POST /v1/inbox/events')
})

test('a path that resembles no route gets no suggestion', () => {
  for (const path of ['/', '', '*', '/nowhere', '/wp-login.php', '/.env', '/robots.txt', '/admin/login']) {
    assert.equal(nearestRoute('GET', path), null, path)
  }
})

test('a route that is not served is not suggested', () => {
  const withoutConsole = createNearestRoute(ROUTES.filter(({ path }) => !path.includes('console')))
  assert.equal(nearestRoute('GET', '/consol'), 'GET /console')
  assert.equal(withoutConsole('GET', '/consol'), null)
})

test('a path that is long or has many parts gets no suggestion', () => {
  assert.equal(nearestRoute('GET', `/v1/inbox/events/${'7'.repeat(100)}`), null)
  assert.equal(nearestRoute('GET', '/v1/inbox/events/1/2/3/4'), null)
})

test('whatever the path, the suggestion is a row of the table', () => {
  const rows = new Set(ROUTES.map(({ method, path }) => `${method} ${path}`))
  const part = fc.oneof(anyText(20), fc.constantFrom('v1', 'inbox', 'events', 'evnts', 'claims', 'api', '7', '', '..'))
  fc.assert(
    fc.property(
      fc.constantFrom('GET', 'POST', 'DELETE', 'PROPFIND'),
      fc.array(part, { maxLength: 8 }),
      (method, parts) => {
        const found = nearestRoute(method, `/${parts.join('/')}`)
        assert.ok(found === null || rows.has(found))
      },
    ),
  )
})
