import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { drivers } from '../support/drivers.ts'
import { sharedApp } from '../support/shared-app.ts'

const FILE = readFileSync(new URL('../../api/openapi.yaml', import.meta.url), 'utf8')

for (const driver of drivers) {
  describe(`the documentation on ${driver.name}`, () => {
    const shared = sharedApp(driver)
    const behindProxy = sharedApp(driver, { settings: { trustedProxies: 'loopback' } })

    test('GET /openapi.yaml is the file, as YAML', async () => {
      const answer = await shared.app.send({ path: '/openapi.yaml' })
      assert.equal(answer.status, 200)
      assert.match(String(answer.headers['content-type']), /^application\/yaml\b/)
      assert.equal(answer.headers['x-content-type-options'], 'nosniff')
      assert.equal(answer.text, FILE)
    })

    test('GET /openapi.json is the same document, as JSON', async () => {
      const answer = await shared.app.send({ path: '/openapi.json' })
      assert.equal(answer.status, 200)
      assert.match(String(answer.headers['content-type']), /^application\/json\b/)
      assert.equal(answer.headers['x-content-type-options'], 'nosniff')
      assert.deepEqual(answer.json, JSON.parse(JSON.stringify(parse(FILE))))
    })

    test('GET /docs is a page that loads nothing and runs nothing', async () => {
      const { status, headers, text } = await shared.app.send({ path: '/docs' })
      assert.equal(status, 200)
      assert.match(String(headers['content-type']), /^text\/html; charset=utf-8$/)
      assert.match(String(headers['content-security-policy']), /^default-src 'none'; style-src 'sha256-[^']+';/)
      assert.doesNotMatch(String(headers['content-security-policy']), /unsafe|https?:|\*/)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.match(text, /^<!doctype html>/i)
      assert.doesNotMatch(text, /<script|<link|<img|<iframe|javascript:|\son[a-z]+=/i)
      assert.doesNotMatch(text, /(?:src|href)="(?:https?:)?\/\//i)
    })

    test('a client that has a document gets 304, and one that takes gzip gets it compressed', async () => {
      for (const path of ['/openapi.yaml', '/openapi.json', '/docs']) {
        const first = await fetch(`http://127.0.0.1:${shared.app.port}${path}`)
        assert.deepEqual([first.status, first.headers.get('content-encoding')], [200, 'gzip'], path)
        const { text } = await shared.app.send({ path, headers: { Host: `127.0.0.1:${shared.app.port}` } })
        assert.equal(await first.text(), text)
        const again = await shared.app.send({
          path,
          headers: {
            Host: `127.0.0.1:${shared.app.port}`,
            'If-None-Match': String(first.headers.get('etag')),
          },
        })
        assert.deepEqual([again.status, again.text], [304, ''], path)
      }
    })

    test('GET /docs names the address it was asked at, and is under 600 kB', async () => {
      for (const host of ['intray.example', 'intray.example:8443', 'Intray.Example', '[2001:db8::1]:80', '10.0.0.7']) {
        const { text } = await shared.app.send({ path: '/docs', headers: { Host: host } })
        assert.ok(text.includes(`curl -sS http://${host.toLowerCase()}/api/ping`), host)
        assert.ok(Buffer.byteLength(text) < 600_000)
      }
    })

    test('GET /docs does not repeat a Host that is more than a name', async () => {
      const hostile = [
        "x';id;'",
        '$(id)',
        'a&b',
        'a%22b',
        '(x)',
        'a*',
        "'",
        'a=b',
        '~',
        '!',
        `${'a'.repeat(300)}.example`,
      ]
      for (const host of hostile) {
        const { status, text } = await shared.app.send({ path: '/docs', headers: { Host: host } })
        assert.equal(status, 200, host)
        assert.ok(text.includes(`curl -sS http://127.0.0.1:${shared.app.port}/api/ping`), host)
        assert.ok(!text.includes(`//${host}`), host)
      }
      for (const host of ['<script>', 'a"b', 'a b', 'a/b', 'a\\b', 'a,b']) {
        const { status, text } = await shared.app.send({ path: '/docs', headers: { Host: host } })
        assert.equal(status, 400, host)
        assert.doesNotMatch(text, /<script|a"b/)
      }
    })

    test('GET /docs believes X-Forwarded-Proto and X-Forwarded-Host from a trusted proxy alone', async () => {
      const headers = {
        Host: 'inner',
        'X-Forwarded-Proto': 'https',
        'X-Forwarded-Host': 'evil.example, intray.example',
      }
      const direct = await shared.app.send({ path: '/docs', headers })
      assert.ok(direct.text.includes('curl -sS http://inner/api/ping'))
      const proxied = await behindProxy.app.send({ path: '/docs', headers })
      assert.ok(proxied.text.includes('curl -sS https://intray.example/api/ping'))
      assert.ok(!proxied.text.includes('evil.example'))
      const odd = { ...headers, 'X-Forwarded-Proto': 'javascript', 'X-Forwarded-Host': '<b>' }
      assert.ok(
        (await behindProxy.app.send({ path: '/docs', headers: odd })).text.includes('curl -sS http://inner/api/'),
      )
    })

    test('GET /docs names every address and every error', async () => {
      const { text } = await shared.app.send({ path: '/docs' })
      const { ERRORS } = await import('../../src/model/errors.ts')
      const { ROUTES } = await import('../../src/http/routes.ts')
      for (const { path } of ROUTES) assert.ok(text.replaceAll('<wbr>', '').includes(path), path)
      for (const code of Object.keys(ERRORS)) assert.ok(text.includes(`id="error-${code}"`), code)
    })
  })
}
