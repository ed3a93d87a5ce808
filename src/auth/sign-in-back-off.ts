// Exponential back-off for failed sign-ins, per name and per client network, up to a minute. It only delays sign-ins with a
// password: open sessions and sign-in links keep working.
//
// An attempt counts as failed until it has succeeded, so that concurrent attempts count too.

import type { Clock } from '../runtime/clock.ts'
import { networkOf } from './network.ts'

const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 60_000
/** Failures are forgotten after this long. */
const FORGET_MS = 900_000
/** Several people may share an address. */
const ADDRESS_FACTOR = 4
const MAX_ENTRIES = 10_000

interface Failures {
  count: number
  lastAt: number
}

export interface SignInBackOffOptions {
  readonly clock: Clock
  /** Failures in a row of one name without a delay. */
  readonly free: number
}

export class SignInBackOff {
  readonly #options: SignInBackOffOptions
  /** In the order of the last failure; the oldest are evicted. Two maps, so that names and networks do not evict each other. */
  readonly #names = new Map<string, Failures>()
  readonly #networks = new Map<string, Failures>()

  constructor(options: SignInBackOffOptions) {
    this.#options = options
  }

  /** Milliseconds to wait; 0: the attempt may run and is counted. */
  attempt(name: string | null, address: string): number {
    const { free } = this.#options
    const network = networkOf(address)
    const byNetwork = this.#waitMs(this.#networks.get(network), ADDRESS_FACTOR * free)
    const waitMs = Math.max(byNetwork, name === null ? 0 : this.#waitMs(this.#names.get(name), free))
    if (waitMs > 0) return waitMs
    this.#count(this.#networks, network)
    if (name !== null) this.#count(this.#names, name)
    return 0
  }

  /** Resets the name; for the network only this attempt is taken back, because others may be guessing from there. */
  succeeded(name: string | null, address: string): void {
    const here = this.#networks.get(networkOf(address))
    if (here) here.count -= 1
    if (name !== null) this.#names.delete(name)
  }

  #waitMs(found: Failures | undefined, free: number): number {
    if (!found || found.count < free) return 0
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (found.count - free), LONGEST_PAUSE_MS)
    return Math.max(0, found.lastAt + pauseMs - this.#options.clock.now())
  }

  #count(all: Map<string, Failures>, key: string): void {
    const now = this.#options.clock.now()
    const found = all.get(key)
    const isFresh = found !== undefined && now - found.lastAt < FORGET_MS
    all.delete(key)
    if (all.size >= MAX_ENTRIES) all.delete(all.keys().next().value ?? '')
    all.set(key, { count: isFresh ? found.count + 1 : 1, lastAt: now })
  }
}
