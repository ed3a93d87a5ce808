// The control: a server with the mistakes that the suite looks for must not get past it, and a wrong answer of any kind
// must show.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { goodRequest, table } from './composed.ts'
import type { HostileCase } from './hostile-case.ts'
import { pipelineCase, SEVERAL } from './pipelines.ts'
import type { Tokens } from './senders.ts'
import { Siege } from './siege.ts'
import { startNaiveServer } from './naive-server.ts'
import { violations } from './verdict.ts'
import type { Observed, WireAnswer } from './wire.ts'

const TOKENS: Tokens = { sender: 'a', processor: 'b', disabled: 'c', expired: 'd' }

/** It waits for bytes that never come, where it should answer: long enough for all it does answer. */
const HANG_MS = 1500

test('a naive server is found out in every way there is', async (t) => {
  const naive = await startNaiveServer()
  t.after(() => naive.stop())
  const siege = new Siege(naive)
  const found = await siege.play([...table(goodRequest(TOKENS), TOKENS), pipelineCase(SEVERAL, TOKENS)], HANG_MS)
  for (const kind of [
    /wrong status: 200 {2}instead of 400 invalid_request/,
    /wrong status: 200 {2}instead of 401/,
    /wrong status: 200 {2}instead of 404/,
    /wrong status: 200 {2}instead of 415/,
    /wrong status: 200 {2}instead of 422/,
    /5xx: 500/,
    /it hangs/,
    /a second message out of one: answered/,
    /a second message out of one: \{"source_ref":"smuggled"\}/,
    /an unknown header: x-injected/,
    /no X-Request-Id/,
    /the connection is kept/,
  ]) {
    assert.ok(
      found.some((sentence) => kind.test(sentence)),
      `nobody saw ${kind} in ${found.length} sentences`,
    )
  }
})

const GOOD: HostileCase = {
  name: 'a case',
  pieces: [],
  answers: [{ status: 400, error: 'invalid_request' }],
  stored: [],
  connection: 'kept',
}
const ID = '01a1dee5-bd7a-7b2d-aaad-f3076e07875a'
const BODY = `{"ok":false,"error":"invalid_request","message":"m","request_id":"${ID}","retryable":false}`
const ANSWER: WireAnswer = { status: 400, headers: [['x-request-id', ID]], body: BODY }
const PROBE: WireAnswer = { status: 200, headers: [], body: '{"ok":true}' }
const SEEN: Observed = { answers: [ANSWER], probe: PROBE, isHanging: false, garbled: null }

test('an answer that is as expected is no violation', () => {
  assert.deepEqual(violations(GOOD, SEEN), [])
})

const PLANTED: Record<string, [seen: Partial<Observed>, said: RegExp]> = {
  'another status': [{ answers: [{ ...ANSWER, status: 404 }] }, /wrong status: 404/],
  'another code': [{ answers: [{ ...ANSWER, body: BODY.replace('invalid_request', 'invalid_json') }] }, /wrong status/],
  'a 5xx': [{ answers: [{ ...ANSWER, status: 503 }] }, /5xx: 503/],
  'no answer': [{ answers: [], probe: null }, /0 of 1 answers/],
  'two answers': [{ answers: [ANSWER, ANSWER] }, /a second message out of one/],
  'a hang': [{ isHanging: true }, /it hangs/],
  'no HTTP': [{ garbled: 'HTP' }, /not HTTP/],
  'a header that slipped in': [
    { answers: [{ ...ANSWER, headers: [...ANSWER.headers, ['x-injected', '1']] }] },
    /an unknown header: x-injected/,
  ],
  'a header twice': [{ answers: [{ ...ANSWER, headers: [...ANSWER.headers, ...ANSWER.headers] }] }, /a header twice/],
  'no request id': [{ answers: [{ ...ANSWER, headers: [] }] }, /no X-Request-Id/],
  'no message': [{ answers: [{ ...ANSWER, body: BODY.replace('message', 'msg') }] }, /not an error as promised/],
  'no JSON': [{ answers: [{ ...ANSWER, body: '<h1>400</h1>' }] }, /no JSON/],
  'a connection that is closed': [{ probe: null, answers: [closing(ANSWER)] }, /the connection is closed/],
  'a connection out of step': [{ probe: { ...PROBE, status: 400 } }, /out of step: then 400/],
}

function closing(answer: WireAnswer): WireAnswer {
  return { ...answer, headers: [...answer.headers, ['connection', 'close']] }
}

for (const [name, [seen, said]] of Object.entries(PLANTED)) {
  test(`the checker sees ${name}`, () => {
    assert.match(violations(GOOD, { ...SEEN, ...seen }).join('\n'), said)
  })
}
