import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { hostProblem, isHost } from '../../../../src/http/wire/host.ts'

const GOOD = [
  'a',
  'a.test',
  'a-b_c.test:8080',
  '127.0.0.1',
  '127.0.0.1:80',
  '[::1]',
  '[2001:db8::1]:443',
  'a:',
  'a%20b',
  'A.',
]
const BAD = [
  '',
  ':80',
  'a@b',
  'u:p@b',
  'a/b',
  'a, b',
  'a,b',
  'a b',
  'a:b',
  'a:1:2',
  'a:999999',
  '[::1',
  '::1',
  '[]',
  'a?b',
  'a#b',
]
const WORSE = ['\u00fc.test', 'a\\b', '"a"', '<a>', 'a%2', 'http://a', '[::1]x', 'a\tb']

function requestWith(hosts: readonly string[], url = '/', minor = 1): IncomingMessage {
  const rawHeaders = ['Accept', '*/*', ...hosts.flatMap((host) => ['hOsT', host])]
  return { rawHeaders, url, httpVersionMajor: 1, httpVersionMinor: minor } as IncomingMessage
}

test('a host is a name or an address, with a port or without', () => {
  for (const host of GOOD) assert.equal(isHost(host), true, host)
  for (const host of [...BAD, ...WORSE]) assert.equal(isHost(host), false, host)
})

test('one host passes, also repeated over requests; a bad one does not, even after a good one', () => {
  for (let round = 0; round < 2; round += 1) {
    for (const host of GOOD) assert.equal(hostProblem(requestWith([host])), null, host)
    for (const host of BAD) assert.equal(hostProblem(requestWith([host]))?.code, 'invalid_request', host)
  }
})

test('no Host and two are refused; HTTP/1.0 needs none', () => {
  assert.match(hostProblem(requestWith([]))!.message!, /is missing/)
  assert.match(hostProblem(requestWith(['a', 'a']))!.message!, /more than once/)
  assert.match(hostProblem(requestWith(['a', 'a'], '/', 0))!.message!, /more than once/)
  assert.equal(hostProblem(requestWith([], '/', 0)), null)
  assert.equal(hostProblem(requestWith([''], '/', 0))?.code, 'invalid_request')
})

test('a whole URL in the request line must name a host as well', () => {
  for (const url of ['http://a/b', 'HTTPS://a:1?x=@', 'http://[::1]/', '*', 'ftp://u@a/']) {
    assert.equal(hostProblem(requestWith(['a'], url)), null, url)
  }
  for (const url of ['http://u@a/b', 'http:///b', 'http://a,b/', 'http://a:b/', 'https://?x']) {
    assert.equal(hostProblem(requestWith(['a'], url))?.code, 'invalid_request', url)
  }
})
