import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createClientAddress, type ForwardedHeader } from '../../../../src/http/wire/client-address.ts'

function from(
  trusted: readonly string[],
  peer: string | undefined,
  headers: Record<string, string> = {},
  header: ForwardedHeader = 'x-forwarded-for',
) {
  return createClientAddress(
    trusted,
    header,
  )({ socket: { remoteAddress: peer }, headers } as unknown as IncomingMessage)
}

const XFF = (value: string) => ({ 'x-forwarded-for': value })

test('without trusted proxies the peer counts, whatever it says', () => {
  assert.equal(from([], '127.0.0.1', XFF('203.0.113.7')), '127.0.0.1')
  assert.equal(from(['10.0.0.0/8'], '192.0.2.1', XFF('203.0.113.7')), '192.0.2.1')
  assert.equal(from(['10.0.0.0/8'], undefined, XFF('203.0.113.7')), undefined)
})

test('behind a trusted proxy the rightmost address that is no trusted proxy counts', () => {
  const trusted = ['loopback', '10.0.0.0/8', '2001:db8:ffff::/48', '192.0.2.9']
  assert.equal(from(trusted, '127.0.0.1', XFF('203.0.113.7')), '203.0.113.7')
  assert.equal(from(trusted, '::1', XFF('203.0.113.7')), '203.0.113.7')
  assert.equal(from(trusted, '::ffff:10.1.2.3', XFF('203.0.113.7')), '203.0.113.7')
  assert.equal(from(trusted, '2001:db8:ffff::5', XFF('2001:db8::7')), '2001:db8::7')
  assert.equal(from(trusted, '10.1.2.3', XFF('6.6.6.6, 203.0.113.7, 192.0.2.9, 10.0.0.1')), '203.0.113.7')
  assert.equal(from(trusted, '10.1.2.3', XFF('10.0.0.2,10.0.0.1')), '10.0.0.2', 'a client inside')
  assert.equal(from(trusted, '10.1.2.3'), '10.1.2.3', 'a proxy that says nothing')
})

test('ports and brackets are left out; what is no address ends the walk at the last hop that is known', () => {
  const behind = (value: string) => from(['loopback'], '127.0.0.1', XFF(value))
  assert.equal(behind('203.0.113.7:5123'), '203.0.113.7')
  assert.equal(behind('[2001:db8::7]:5123'), '2001:db8::7')
  assert.equal(behind('::ffff:203.0.113.7'), '203.0.113.7')
  for (const value of [
    '',
    'unknown',
    '203.0.113',
    "' OR 1=1",
    '203.0.113.7, _hidden',
    'fe80::1%eth0',
    ',',
    '999.1.1.1',
  ])
    assert.equal(behind(value), '127.0.0.1', value)
  assert.equal(behind('203.0.113.7, rubbish, 127.0.0.1'), '127.0.0.1')
})

test('one header is believed: Forwarded where a setting names it, and then not X-Forwarded-For', () => {
  const behind = (headers: Record<string, string>, header: ForwardedHeader = 'forwarded') =>
    from(['loopback'], '127.0.0.1', headers, header)
  assert.equal(behind({ forwarded: 'for=203.0.113.7' }), '203.0.113.7')
  assert.equal(behind({ forwarded: 'for=6.6.6.6, for="203.0.113.7:81";proto=https;by=10.0.0.1' }), '203.0.113.7')
  assert.equal(behind({ forwarded: 'proto=https;For="[2001:db8::7]"' }), '2001:db8::7')
  assert.equal(behind({ forwarded: 'for=_hidden' }), '127.0.0.1')
  assert.equal(behind({ forwarded: 'by=203.0.113.7' }), '127.0.0.1')
  const both = { forwarded: 'for=203.0.113.7', ...XFF('203.0.113.8') }
  assert.equal(behind(both), '203.0.113.7')
  assert.equal(behind(both, 'x-forwarded-for'), '203.0.113.8')
  assert.equal(behind(XFF('203.0.113.8')), '127.0.0.1')
  assert.equal(behind({ forwarded: 'for=203.0.113.7' }, 'x-forwarded-for'), '127.0.0.1')
})

test('a long list is read from the right, up to the limit of hops', () => {
  const long = Array.from({ length: 10_000 }, () => '127.0.0.1').join(',')
  assert.equal(from(['loopback'], '127.0.0.1', XFF(`203.0.113.7,${long}`)), '127.0.0.1')
})
