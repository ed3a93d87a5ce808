import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointTarget } from '../../../../src/model/endpoint.ts'
import { secretTexts } from '../../../../src/processing/push/target.ts'
import { keptText, retryAfterMs, verdictOf } from '../../../../src/processing/push/verdict.ts'

const NOW = Date.parse('2026-11-15T12:00:00Z')
const answer = (status: number, retryAfter: string | null = null, body = '') =>
  verdictOf({ status, retryAfter, body: Buffer.from(body), ms: 1 }, [], NOW)

test('2xx delivers, 410 is gone, everything else fails', () => {
  for (const status of [200, 202, 204, 299]) assert.deepEqual(answer(status), { what: 'delivered' })
  for (const status of [199, 300, 302, 400, 404, 500]) {
    assert.deepEqual(answer(status), { what: 'failed', error: `HTTP ${status}`, waitMs: null, isGone: false })
  }
  assert.deepEqual(answer(410, null, 'no'), { what: 'failed', error: 'HTTP 410: no', waitMs: null, isGone: true })
})

test('Retry-After counts for 429 and 503 alone, as seconds or a date, for an hour at most', () => {
  const waits = (status: number, text: string) => (answer(status, text) as { waitMs: number | null }).waitMs
  assert.deepEqual([waits(429, '30'), waits(503, '30'), waits(500, '30')], [30_000, 30_000, null])
  assert.equal(retryAfterMs('Sun, 15 Nov 2026 12:10:00 GMT', NOW), 600_000)
  assert.equal(retryAfterMs('Sun, 15 Nov 2026 11:00:00 GMT', NOW), 0, 'in the past')
  for (const text of ['999999999', 'Mon, 16 Nov 2026 12:00:00 GMT']) assert.equal(retryAfterMs(text, NOW), 3_600_000)
  for (const text of ['', 'soon', '-1', '1.5', '99999999999', null]) assert.equal(retryAfterMs(text, NOW), null)
})

const TARGET: EndpointTarget = {
  url: 'https://example.com/in?key=query-canary',
  headers: [
    { name: 'Authorization', value: 'Bearer header-canary', isSecret: true },
    { name: 'X-Team', value: 'team-shown', isSecret: false },
  ],
  secrets: [{ secret: 'whsec_signing-canary', createdAt: 0, endsAt: null }],
}

test('what a kept answer repeats of the secrets is masked, whole and cut', () => {
  const secrets = secretTexts(TARGET)
  const text = 'header-canary query-canary whsec_signing-canary Bearer header-canary team-shown Bearer'
  assert.equal(keptText(Buffer.from(text), secrets), '[redacted] [redacted] [redacted] [redacted] team-shown Bearer')
  assert.equal(keptText(Buffer.from('x header-can'), secrets), 'x [redacted]')
  assert.equal(keptText(Buffer.from(`a token: itr_${'a'.repeat(10)}_${'b'.repeat(36)}`), []), 'a token: itr_[redacted]')
})

test('a kept answer is text of 1024 characters at most, without U+0000', () => {
  assert.equal(keptText(Buffer.from('é '.repeat(2000)), []).length, 1024)
  assert.equal(keptText(Buffer.from([65, 0, 66]), []), 'A\uFFFDB')
  assert.equal(keptText(Buffer.from('é').subarray(0, 1), []), '', 'a character that was cut in two')
})
