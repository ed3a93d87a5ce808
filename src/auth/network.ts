// The network of a client address, as the unit of rate limits.

import { isIPv4 } from 'node:net'

/** An IPv4 address, or the /64 of an IPv6 address, which a single host usually gets. */
export function networkOf(address: string): string {
  const plain = address.startsWith('::ffff:') && isIPv4(address.slice(7)) ? address.slice(7) : address
  if (isIPv4(plain)) return plain
  const [left = '', right] = plain.replace(/%.*$/, '').split('::')
  const head = left === '' ? [] : left.split(':')
  const tail = right === undefined || right === '' ? [] : right.split(':')
  const zeros = right === undefined ? 0 : Math.max(0, 8 - head.length - tail.length)
  const groups = [...head, ...Array<string>(zeros).fill('0'), ...tail]
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
