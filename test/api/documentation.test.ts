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

    test('GET /docs names every address and every error', async () => {
      const { text } = await shared.app.send({ path: '/docs' })
      const { ERRORS } = await import('../../src/model/errors.ts')
      const { ROUTES } = await import('../../src/http/routes.ts')
      for (const { path } of ROUTES) assert.ok(text.includes(path), path)
      for (const code of Object.keys(ERRORS)) assert.ok(text.includes(code), code)
    })
  })
}
