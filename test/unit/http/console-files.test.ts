import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { createConsoleFiles } from '../../../src/http/console-files.ts'
import type { Answer } from '../../../src/http/problem.ts'
import { tempFolder } from '../../support/temp.ts'

const request = (encoding = ''): IncomingMessage =>
  ({ headers: encoding === '' ? {} : { 'accept-encoding': encoding } }) as unknown as IncomingMessage

const SCRIPT = `console.log(${'1+'.repeat(2000)}1)`

function built(folder = tempFolder('console')): string {
  mkdirSync(join(folder, 'assets'))
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Console</title>')
  writeFileSync(join(folder, 'assets', 'app-1a2b3c.js'), SCRIPT)
  writeFileSync(join(folder, 'secret.key'), 'not to be served')
  return folder
}

const bodyOf = (answer: Answer) => Buffer.from(answer.body).toString()

test('the page and every address of the application are index.html, which browsers revalidate each time', async () => {
  const files = createConsoleFiles(built())
  for (const made of [files.page(request()), files.file(request(), 'queue'), files.file(request(), 'events/17')]) {
    const answer = await made
    assert.ok('status' in answer)
    assert.match(bodyOf(answer), /<title>Console/)
    assert.equal(answer.headers['Cache-Control'], 'no-cache')
    assert.equal(answer.headers['Content-Type'], 'text/html; charset=utf-8')
  }
})

test('files named by their hash are cached for ever, and compressed for clients that accept gzip', async () => {
  const files = createConsoleFiles(built())
  const plain = (await files.file(request(), 'assets/app-1a2b3c.js')) as Answer
  assert.equal(plain.headers['Cache-Control'], 'public, max-age=31536000, immutable')
  assert.equal(bodyOf(plain), SCRIPT)
  for (const encoding of ['gzip', 'br, gzip;q=0.5', 'deflate, gzip']) {
    const answer = (await files.file(request(encoding), 'assets/app-1a2b3c.js')) as Answer
    assert.equal(answer.headers['Content-Encoding'], 'gzip', encoding)
    assert.equal(gunzipSync(answer.body as Buffer).toString(), SCRIPT)
  }
  for (const encoding of ['br', 'gzip;q=0', 'gzip; q=0.0, br', 'xgzip', 'identity']) {
    const answer = (await files.file(request(encoding), 'assets/app-1a2b3c.js')) as Answer
    assert.equal(answer.headers['Content-Encoding'], undefined, encoding)
  }
})

test('no file outside of the build and none of an unknown type is served', async () => {
  const files = createConsoleFiles(built())
  for (const path of ['../package.json', '..%2f..%2fetc.js', 'assets/../index.html', 'secret.key', 'assets/none.js']) {
    assert.deepEqual(files.file(request(), path), { code: 'not_found' }, path)
  }
})

test('every file comes with headers under which only the console itself runs', async () => {
  const files = createConsoleFiles(built())
  const answers = [await files.page(request()), (await files.file(request(), 'assets/app-1a2b3c.js')) as Answer]
  const unbuilt = await createConsoleFiles(tempFolder('console')).page(request())
  for (const { headers } of [...answers, unbuilt]) {
    const csp = headers['Content-Security-Policy']!
    for (const rule of ["default-src 'none'", "script-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"]) {
      assert.ok(csp.includes(rule), rule)
    }
    assert.ok(!csp.includes('unsafe'))
    assert.equal(headers['X-Content-Type-Options'], 'nosniff')
    assert.equal(headers['Referrer-Policy'], 'no-referrer')
    assert.equal(headers['Cross-Origin-Opener-Policy'], 'same-origin')
  }
})

test('without a build a page says so, and a later build is served at once', async () => {
  const folder = tempFolder('console')
  const files = createConsoleFiles(folder)
  assert.match(bodyOf(await files.page(request())), /not built yet/)
  assert.match(bodyOf((await files.file(request(), 'queue')) as Answer), /not built yet/)
  assert.deepEqual(files.file(request(), 'assets/app.js'), { code: 'not_found' })
  built(folder)
  assert.match(bodyOf(await files.page(request())), /<title>Console/)
})
