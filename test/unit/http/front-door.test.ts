import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFrontDoor, prefersHtml } from '../../../src/http/front-door.ts'
import { isConsoleRoute, ROUTES } from '../../../src/http/routes.ts'

const FIREFOX = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

test('a browser prefers HTML; curl, a program that takes JSON, and a request without Accept do not', () => {
  for (const accept of [FIREFOX, 'text/html', 'TEXT/HTML', 'text/*, application/json;q=0.5', 'text/html, */*;q=0.1'])
    assert.equal(prefersHtml(accept), true, `${accept}`)
  const others = [undefined, '', '*/*', 'application/json', 'text/html;q=0', 'text/html;q=0.5, application/json']
  for (const accept of [...others, 'text/html, application/json', 'text/html;q=x', ';;,,', 'image/*'])
    assert.equal(prefersHtml(accept), false, `${accept}`)
})

test('a browser is led to the console, and to the documentation where the console is off; others get the addresses', () => {
  const on = createFrontDoor(ROUTES)
  const off = createFrontDoor(ROUTES.filter((route) => !isConsoleRoute(route)))
  const browser = { headers: { accept: FIREFOX } }
  for (const [door, location, console] of [
    [on, '/console', '/console'],
    [off, '/docs', null],
  ] as const) {
    const page = door(browser)
    assert.deepEqual([page.status, page.headers.Location, page.headers.Vary], [303, location, 'Accept'])
    const json = door({ headers: {} })
    assert.deepEqual([json.status, json.headers.Vary], [200, 'Accept'])
    assert.deepEqual(JSON.parse(String(json.body)), { ok: true, docs: '/docs', console, health: '/readyz' })
  }
})

test('every address that the front door names is a route', () => {
  const { docs, console, health } = JSON.parse(String(createFrontDoor(ROUTES)({ headers: {} }).body)) as Record<
    string,
    string
  >
  const paths = ROUTES.map(({ path }) => path)
  for (const path of [docs, console, health]) assert.ok(paths.includes(path!), `${path}`)
})
