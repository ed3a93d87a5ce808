// Addresses of servers on this machine: the one that the settings give, the console's, and that of a sign-in link.

import type { Config } from '../config.ts'

/** Where a server with these settings listens, as a client on this machine reaches it. */
export function configuredAddress({ host, port, tlsCert }: Pick<Config, 'host' | 'port' | 'tlsCert'>): string {
  return reachable(`${tlsCert === null ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`)
}

export function consoleUrl(address: string): string {
  return `${reachable(address)}/console`
}

/** The code stands behind the #, which browsers do not send, so it appears in no log. */
export function linkUrl(address: string, code: string): string {
  return `${consoleUrl(address)}#link=${code}`
}

/** A server that listens on all addresses also listens on loopback. */
function reachable(address: string): string {
  return address.replace('//0.0.0.0', '//127.0.0.1').replace('//[::]', '//[::1]')
}
