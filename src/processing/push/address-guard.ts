// Which addresses a push may connect to: public ones, and those that the operator allows (INTRAY_PUSH_ALLOW). The author of
// an endpoint chooses its URL, so a push must not reach what only this machine or its network can reach.
//
// Fails closed: what is no address is forbidden.

import { BlockList, isIP } from 'node:net'

/** By the IANA registries of special addresses. What a network of a cloud serves under its own is link-local or below. */
const FORBIDDEN_V4 = [
  '0.0.0.0/8', // this network, unspecified
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; 100.100.100.200 is the metadata of a cloud
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local; 169.254.169.254 is the metadata of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; 192.0.0.192 is the metadata of a cloud
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '168.63.129.16/32', // the host of an Azure machine
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
] as const

/** An address that holds one of version 4 could hold any, so such ranges are forbidden as a whole. */
const FORBIDDEN_V6 = [
  '::/96', // unspecified, loopback, and IPv4-compatible
  '::ffff:0:0/96', // IPv4-mapped
  '::ffff:0:0:0/96', // IPv4-translated
  '64:ff9b::/96', // NAT64
  '64:ff9b:1::/48', // NAT64 of a network
  '100::/64', // discard
  '100:0:0:1::/64', // dummy
  '2001::/23', // protocol assignments: Teredo, benchmarking, ORCHID
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
  '5f00::/16', // segment routing
  'fc00::/7', // unique local; fd00:ec2::254 is the metadata of a cloud
  'fe80::/10', // link-local
  'fec0::/10', // site-local
  'ff00::/8', // multicast
] as const

const LOOPBACK = ['127.0.0.0/8', '::1/128'] as const

/** As a URL writes it. Its last 32 bits are the address that the NAT connects to. */
const NAT64 = '[64:ff9b::'

export class AddressGuard {
  readonly #forbidden: Lists
  readonly #allowed: Lists

  /** `allowed`: addresses, networks, `loopback`. */
  constructor(allowed: readonly string[] = []) {
    this.#forbidden = new Lists([...FORBIDDEN_V4, ...FORBIDDEN_V6])
    this.#allowed = new Lists(allowed.flatMap((entry) => (entry === 'loopback' ? LOOPBACK : [entry])))
  }

  /** An address as a resolver or the parser of URLs writes it: without brackets. */
  isAllowed(address: string): boolean {
    // A zone names an interface, which changes nothing about the range.
    const plain = address.replace(/%.*$/, '')
    const family = isIP(plain)
    if (family === 0) return false
    // With NAT64 allowed, a private address of version 4 would be reachable through it.
    const translated = family === 6 ? translatedAddress(plain) : null
    if (translated !== null && !this.isAllowed(translated)) return false
    return this.#allowed.has(plain, family) || !this.#forbidden.has(plain, family)
  }
}

/** The address of version 4 behind one of NAT64; null for others. */
function translatedAddress(address: string): string | null {
  const { hostname } = new URL(`http://[${address}]`)
  if (!hostname.startsWith(NAT64)) return null
  const groups = hostname.slice(NAT64.length, -1).split(':')
  const [high, low] = groups.length === 1 ? ['', groups[0]!] : [groups[0]!, groups[1]!]
  const [first, second] = [Number.parseInt(high || '0', 16), Number.parseInt(low || '0', 16)]
  return [first >> 8, first & 255, second >> 8, second & 255].join('.')
}

/** One list for each version: in one list, the range of IPv4-mapped addresses would contain every address of version 4. */
class Lists {
  readonly #lists = { 4: new BlockList(), 6: new BlockList() }

  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const [address = '', bits] = network.split('/')
      const family = isIP(address) === 6 ? 6 : 4
      const prefix = bits === undefined ? (family === 4 ? 32 : 128) : Number(bits)
      this.#lists[family].addSubnet(address, prefix, family === 4 ? 'ipv4' : 'ipv6')
    }
  }

  has(address: string, family: number): boolean {
    return family === 4 ? this.#lists[4].check(address, 'ipv4') : this.#lists[6].check(address, 'ipv6')
  }
}
