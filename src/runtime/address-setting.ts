// The kinds of settings that name addresses: networks, an address to listen on, the URL of a collector.

import { isIP, isIPv4 } from 'node:net'
import type { Setting } from './setting.ts'

export const networks = (about: string): Setting<readonly string[]> => ({
  fallback: [],
  about,
  parse: (value) => {
    const list = value.split(',').map((entry) => entry.trim())
    const wrong = list.find((entry) => entry !== 'loopback' && !isNetwork(entry))
    if (wrong !== undefined)
      throw new Error(`has "${wrong}", which is not an address, a network such as 10.0.0.0/8, or loopback`)
    return list
  },
  format: (value) => value.join(','),
})

function isNetwork(entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/')
  if (isIP(address) === 0 || address.includes('%') || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (isIPv4(address) ? 32 : 128))
}

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

export const listenAddress = (about: string): Setting<ListenAddress | null> => ({
  fallback: null,
  about,
  parse: (value) => {
    if (value === 'off') return null
    const match = /^(\[[0-9a-f:.]+\]|[^:\s]+):(\d{1,5})$/i.exec(value)
    const port = Number(match?.[2])
    if (!match || port > 65535) throw new Error('must be off or an address such as 127.0.0.1:9464')
    return { host: match[1]!.replace(/^\[|\]$/g, ''), port }
  },
  format: (value) => (value === null ? 'off' : `${value.host}:${value.port}`),
})

const plainUrl = (example: string, about: string): Setting<string | null> => ({
  fallback: null,
  about,
  parse: (value) => {
    const url = URL.parse(value)
    const isPlain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
    if (!isPlain || !/^https?:$/.test(url.protocol))
      throw new Error(`must be a URL such as ${example}, without user, password and query`)
    return url.href.replace(/\/+$/, '')
  },
  format: (value) => value ?? '',
})

export const collector = (about: string) => plainUrl('http://127.0.0.1:4318', about)

/** May have a path, for a proxy that removes it. */
export const publicUrl = (about: string) => plainUrl('https://in.example.com', about)
