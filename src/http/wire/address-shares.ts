// Bounds what one client address has open, so that nobody takes all connections: its connections, or, behind a trusted proxy,
// its requests in progress, because a proxy's connections are shared. The proxy's own connections are not bounded.

import type { Socket } from 'node:net'
import { networkOf } from '../../auth/network.ts'
import type { Problem } from '../../model/errors.ts'
import type { Release } from '../../runtime/concurrency-limiter.ts'
import { createIsTrusted } from './client-address.ts'

export const TOO_MANY_OPEN: Problem = {
  code: 'overloaded',
  message: 'Too many requests of this address are in progress. Send it again after Retry-After seconds.',
}

const NOTHING: Release = () => {}

export class AddressShares {
  readonly #max: number
  readonly #isTrusted: (address: string | undefined) => boolean
  /** By network. */
  readonly #open = new Map<string, number>()

  constructor(max: number, trustedProxies: readonly string[]) {
    this.#max = max
    this.#isTrusted = createIsTrusted(trustedProxies)
  }

  /** Networks with anything open. */
  get size(): number {
    return this.#open.size
  }

  /** False if the peer has as many connections as it may. */
  admitConnection(socket: Socket): boolean {
    const { remoteAddress } = socket
    if (remoteAddress === undefined || this.#isTrusted(remoteAddress)) return true
    const release = this.#acquire(remoteAddress)
    if (release) socket.once('close', release)
    return release !== null
  }

  /** Whose turn it is when the connection has bytes: its peer's, or, behind a trusted proxy, the connection's own. */
  holderOf({ remoteAddress = '', remotePort }: Socket): string {
    return this.#isTrusted(remoteAddress) ? `${remoteAddress} ${remotePort}` : networkOf(remoteAddress)
  }

  /** Null if the client that the proxy names has as many requests in progress as it may. */
  admitRequest(socket: Socket, address: string | undefined): Release | null {
    if (address === undefined || !this.#isTrusted(socket.remoteAddress) || this.#isTrusted(address)) return NOTHING
    return this.#acquire(address)
  }

  #acquire(address: string): Release | null {
    const key = networkOf(address)
    const open = this.#open.get(key) ?? 0
    if (open >= this.#max) return null
    this.#open.set(key, open + 1)
    return () => {
      const left = this.#open.get(key)! - 1
      if (left === 0) this.#open.delete(key)
      else this.#open.set(key, left)
    }
  }
}
