// The part of a client's address that is stored with an event: all, the network, or nothing.

import { isIPv4 } from 'node:net'

export function remoteAddress(address: string | undefined, keep: 'full' | 'truncated' | 'off'): string | null {
  if (address === undefined || keep === 'off') return null
  const plain = address.startsWith('::ffff:') && isIPv4(address.slice(7)) ? address.slice(7) : address
  return keep === 'full' ? plain : truncated(plain)
}

/** The network without the host: /24 of IPv4, /48 of IPv6. */
function truncated(address: string): string {
  if (isIPv4(address)) return `${address.split('.').slice(0, 3).join('.')}.0`
  const [left = '', right] = address.split('::')
  const groups = left === '' ? [] : left.split(':')
  const filled = right === undefined ? groups : [...groups, ...Array<string>(8).fill('0')]
  return `${filled.slice(0, 3).join(':')}::`
}
