// The address of the client: the peer of the connection, or, behind a trusted proxy, the last address in the proxies' list
// that is not a trusted proxy. Each proxy appends the address it saw; entries further left may be forged. Only one header is
// read, because a proxy that sets one passes on the other as the client sent it.

import { BlockList, isIP, isIPv4 } from 'node:net'
import type { RequestHead } from './head.ts'

export type ForwardedHeader = 'x-forwarded-for' | 'forwarded'
export type ClientAddress = (req: RequestHead) => string | undefined

const MAX_HOPS = 32

export function createClientAddress(
  trusted: readonly string[],
  header: ForwardedHeader = 'x-forwarded-for',
): ClientAddress {
  if (trusted.length === 0) return (req) => req.socket.remoteAddress
  const isTrusted = createIsTrusted(trusted)
  return (req) => {
    const peer = req.socket.remoteAddress
    return peer !== undefined && isTrusted(peer) ? forwardedFor(hopsOf(req, header), plain(peer), isTrusted) : peer
  }
}

/** The last known hop if an entry is not an address or the list is too long. */
function forwardedFor(hops: readonly (string | null)[], peer: string, isTrusted: (address: string) => boolean): string {
  let known = peer
  for (const hop of hops.slice(-MAX_HOPS).toReversed()) {
    const address = hop === null ? null : addressOf(hop)
    if (address === null) return known
    known = address
    if (!isTrusted(address)) return known
  }
  return known
}

/** Null for a hop of Forwarded (RFC 7239) without an address. */
function hopsOf({ headers }: RequestHead, header: ForwardedHeader): (string | null)[] {
  const list = headers[header]
  if (list === undefined) return []
  const hops = String(list).split(',')
  if (header === 'x-forwarded-for') return hops
  return hops
    .map((element) => /(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^;\s"]+))\s*(?:;|$)/i.exec(element))
    .map((found) => found?.[1] ?? found?.[2] ?? null)
}

/** `203.0.113.7`, `203.0.113.7:1234`, `2001:db8::1`, `[2001:db8::1]:1234`; null for anything else. */
function addressOf(hop: string): string | null {
  const text = hop.trim()
  const bare = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text
  return isIP(bare) === 0 || bare.includes('%') ? null : plain(bare)
}

/** An IPv4 address that came over an IPv6 socket, as IPv4. */
function plain(address: string): string {
  return address.startsWith('::ffff:') && isIPv4(address.slice(7)) ? address.slice(7) : address
}

/** Whether an address is one of these addresses or in one of these networks. */
export function createIsTrusted(trusted: readonly string[]): (address: string | undefined) => boolean {
  const list = new BlockList()
  for (const entry of trusted.flatMap((one) => (one === 'loopback' ? LOOPBACK : [one]))) addTo(list, entry)
  return (address) => {
    const own = plain(address ?? '')
    return own !== '' && list.check(own, isIPv4(own) ? 'ipv4' : 'ipv6')
  }
}

const LOOPBACK = ['127.0.0.0/8', '::1']

function addTo(list: BlockList, entry: string): void {
  const [network = '', bits] = entry.split('/')
  const family = isIPv4(network) ? 'ipv4' : 'ipv6'
  if (bits === undefined) list.addAddress(network, family)
  else list.addSubnet(network, Number(bits), family)
}
