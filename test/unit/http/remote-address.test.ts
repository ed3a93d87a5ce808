import assert from 'node:assert/strict'
import { test } from 'node:test'
import { remoteAddress } from '../../../src/http/remote-address.ts'

test('full: the address as it is, an IPv4-mapped one as IPv4', () => {
  assert.equal(remoteAddress('203.0.113.77', 'full'), '203.0.113.77')
  assert.equal(remoteAddress('::ffff:203.0.113.77', 'full'), '203.0.113.77')
  assert.equal(remoteAddress('2001:db8::1', 'full'), '2001:db8::1')
  assert.equal(remoteAddress('::1', 'full'), '::1')
})

test('truncated: the network without the host', () => {
  assert.equal(remoteAddress('203.0.113.77', 'truncated'), '203.0.113.0')
  assert.equal(remoteAddress('::ffff:203.0.113.77', 'truncated'), '203.0.113.0')
  assert.equal(remoteAddress('2001:db8:1:2:3:4:5:6', 'truncated'), '2001:db8:1::')
  assert.equal(remoteAddress('2001:db8:1::6', 'truncated'), '2001:db8:1::')
  assert.equal(remoteAddress('2001:db8::6', 'truncated'), '2001:db8:0::')
  assert.equal(remoteAddress('fe80::1%eth0', 'truncated'), 'fe80:0:0::')
  assert.equal(remoteAddress('::1', 'truncated'), '0:0:0::')
})

test('truncated: addresses that differ in the host alone become one', () => {
  for (const host of ['1', 'dead:beef', 'a:b:c:d:e']) {
    assert.equal(
      remoteAddress(`2001:db8:7:${host.split(':').length === 5 ? host : `:${host}`}`, 'truncated'),
      '2001:db8:7::',
    )
  }
})

test('off, or an unknown address: nothing', () => {
  assert.equal(remoteAddress('203.0.113.77', 'off'), null)
  for (const keep of ['full', 'truncated', 'off'] as const) assert.equal(remoteAddress(undefined, keep), null)
})
