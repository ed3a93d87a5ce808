import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AddressGuard } from '../../../../src/processing/push/address-guard.ts'

const FORBIDDEN = [
  ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.255.255.255', '100.64.0.1', '100.100.100.200', '100.127.255.255'],
  ...['127.0.0.1', '127.255.255.254', '169.254.169.254', '169.254.170.2', '168.63.129.16', '172.16.0.1'],
  ...['172.31.255.255', '192.0.0.192', '192.0.2.1', '192.88.99.1', '192.168.0.1', '198.18.0.1', '198.19.255.255'],
  ...['198.51.100.7', '203.0.113.9', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...['::', '::1', '::7f00:1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '::ffff:0:127.0.0.1'],
  ...['64:ff9b::7f00:1', '64:ff9b:1::a00:1', '100::1', '2001::1', '2001:2::1', '2001:20::1', '2001:db8::1'],
  ...['2002:7f00:1::', '2002:a00:1::1', '3fff::1', '5f00::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'fe80::1%eth0'],
  ...['fec0::1', 'ff02::1'],
]
const PUBLIC = ['1.1.1.1', '8.8.8.8', '100.63.255.255', '100.128.0.1', '172.15.0.1', '172.32.0.1', '192.0.1.1']
const PUBLIC_V6 = ['2606:4700:4700::1111', '2a00:1450:4001::1', '2400:cb00::1']

test('private, local, reserved and translated addresses are forbidden, public ones are not', () => {
  const guard = new AddressGuard()
  for (const address of FORBIDDEN) assert.equal(guard.isAllowed(address), false, address)
  for (const address of [...PUBLIC, ...PUBLIC_V6]) assert.equal(guard.isAllowed(address), true, address)
})

test('what is no address is forbidden', () => {
  const guard = new AddressGuard(['0.0.0.0/0', '::/0'])
  for (const text of ['', 'localhost', '127.1', '0x7f000001', '2130706433', '[::1]', '1.1.1.1:80', '1.1.1.1/8']) {
    assert.equal(guard.isAllowed(text), false, text)
  }
})

test('the operator allows addresses, networks and loopback, each for itself', () => {
  const guard = new AddressGuard(['10.1.0.0/16', '192.168.7.9', 'fd12::/16', 'loopback'])
  for (const address of ['10.1.2.3', '192.168.7.9', 'fd12::5', '127.0.0.1', '::1', '1.1.1.1']) {
    assert.equal(guard.isAllowed(address), true, address)
  }
  for (const address of ['10.2.0.1', '192.168.7.10', 'fd13::5', '169.254.169.254', '0.0.0.0', '::']) {
    assert.equal(guard.isAllowed(address), false, address)
  }
})

test('with NAT64 allowed, the address behind it is checked as well', () => {
  const guard = new AddressGuard(['64:ff9b::/96', '10.1.0.0/16'])
  for (const address of ['64:ff9b::8.8.8.8', '64:ff9b::808:808', '64:ff9b::10.1.2.3']) {
    assert.equal(guard.isAllowed(address), true, address)
  }
  const forbidden = [
    '64:ff9b::127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::a02:1',
    '64:ff9b::',
    '64:ff9b::1',
    '64:ff9b:1::1',
  ]
  for (const address of forbidden) assert.equal(guard.isAllowed(address), false, address)
})
