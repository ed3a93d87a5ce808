import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowedMethods, ROUTES, withoutTrailingSlash } from '../../../src/http/routes.ts'

test('the table has the four addresses of the interface', () => {
  const rows = ROUTES.map(({ method, path, scope }) => `${method} ${path} ${scope}`)
  for (const row of [
    'GET /api/ping any',
    'GET /api/inbox-test any',
    'POST /v1/inbox/events intake',
    'POST /api/inbox intake',
  ]) {
    assert.ok(rows.includes(row), row)
  }
})

test('the alias is the same operation under the same rule', () => {
  const [first, alias] = ROUTES.filter(({ operation }) => operation === 'intake')
  assert.deepEqual({ ...first, path: '' }, { ...alias, path: '' })
})

test('no two rows are one address', () => {
  assert.equal(new Set(ROUTES.map(({ method, path }) => `${method} ${path}`)).size, ROUTES.length)
})

test('Allow names what an address takes; an unknown one takes nothing', () => {
  assert.equal(allowedMethods(ROUTES, '/api/ping'), 'GET, HEAD, OPTIONS')
  assert.equal(allowedMethods(ROUTES, '/api/inbox'), 'POST, OPTIONS')
  assert.equal(allowedMethods(ROUTES, '/v1/inbox/events'), 'GET, HEAD, POST, OPTIONS')
  assert.equal(allowedMethods(ROUTES, '/v1/inbox/events/17'), 'GET, HEAD, DELETE, OPTIONS')
  assert.equal(allowedMethods(ROUTES, '/v1/inbox/events/17/promote'), 'POST, OPTIONS')
  assert.equal(allowedMethods(ROUTES, '/nowhere'), null)
})

test('one trailing slash is left away, not two', () => {
  assert.equal(withoutTrailingSlash('/a/'), '/a')
  assert.equal(withoutTrailingSlash('/a//'), '/a/')
  assert.equal(withoutTrailingSlash('/a'), '/a')
  assert.equal(withoutTrailingSlash('/'), '/')
})
