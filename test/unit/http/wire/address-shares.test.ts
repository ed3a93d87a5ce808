import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { AddressShares } from '../../../../src/http/wire/address-shares.ts'

const from = (remoteAddress: string) => Object.assign(new EventEmitter(), { remoteAddress }) as unknown as Socket

test('an address has so many connections; one more is not admitted until one closes, and others are untouched', () => {
  const shares = new AddressShares(2, [])
  const [first, second] = [from('192.0.2.1'), from('::ffff:192.0.2.1')]
  assert.ok(shares.admitConnection(first))
  assert.ok(shares.admitConnection(second))
  assert.equal(shares.admitConnection(from('192.0.2.1')), false)
  assert.ok(shares.admitConnection(from('192.0.2.2')))
  first.emit('close')
  assert.ok(shares.admitConnection(from('192.0.2.1')))
})

test('an IPv6 host is its /64, and nothing is kept of addresses that have nothing open', () => {
  const shares = new AddressShares(1, [])
  const first = from('2001:db8::1')
  assert.ok(shares.admitConnection(first))
  assert.equal(shares.admitConnection(from('2001:db8::2')), false)
  assert.ok(shares.admitConnection(from('2001:db8:0:1::1')))
  assert.equal(shares.size, 2)
  first.emit('close')
  assert.equal(shares.size, 1)
})

test('a trusted proxy has any number of connections; the clients that it names have so many requests', () => {
  const shares = new AddressShares(2, ['loopback'])
  const proxy = from('127.0.0.1')
  for (let n = 0; n < 100; n += 1) assert.ok(shares.admitConnection(from('127.0.0.1')))
  const release = shares.admitRequest(proxy, '203.0.113.7')
  assert.ok(release)
  assert.ok(shares.admitRequest(proxy, '203.0.113.7'))
  assert.equal(shares.admitRequest(proxy, '203.0.113.7'), null)
  assert.ok(shares.admitRequest(proxy, '203.0.113.8'))
  for (let n = 0; n < 100; n += 1) assert.ok(shares.admitRequest(proxy, '127.0.0.1'), 'the proxy itself')
  release()
  assert.ok(shares.admitRequest(proxy, '203.0.113.7'))
})

test('control: a client without a proxy is bounded by its connections, not by what it names', () => {
  const shares = new AddressShares(1, ['loopback'])
  for (let n = 0; n < 10; n += 1) assert.ok(shares.admitRequest(from('192.0.2.1'), '203.0.113.7'))
})

test('connections of one address take turns together; those of a trusted proxy each have their own', () => {
  const shares = new AddressShares(1, ['loopback'])
  const holderOf = (remoteAddress: string, remotePort: number) =>
    shares.holderOf(Object.assign(from(remoteAddress), { remotePort }))
  assert.equal(holderOf('192.0.2.1', 1), holderOf('::ffff:192.0.2.1', 2))
  assert.equal(holderOf('2001:db8::1', 1), holderOf('2001:db8::2', 2))
  assert.notEqual(holderOf('192.0.2.1', 1), holderOf('192.0.2.2', 1))
  assert.notEqual(holderOf('127.0.0.1', 1), holderOf('127.0.0.1', 2))
})
