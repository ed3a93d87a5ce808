// Who guesses has to wait: after so many failures in a row a name, or an address, is answered only after a pause that
// doubles with each further one, up to a minute. It holds up signing in and nothing else: a session that is open stays
// usable, and a link signs in whatever was tried with the name.
//
// An attempt counts as failed until it has succeeded: a hundred at once are a hundred failures.

import type { Clock } from '../runtime/clock.ts'
import { networkOf } from './network.ts'

const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 60_000
/** After so long without a failure all is forgotten. */
const FORGET_MS = 900_000
/** Several people may sit behind one address. */
const ADDRESS_FACTOR = 4
const MAX_REMEMBERED = 10_000

interface Failures {
  count: number
  lastAt: number
}

export interface SignInBackOffOptions {
  readonly clock: Clock
  /** Failures in a row of one name that cost no pause. */
  readonly free: number
}

export class SignInBackOff {
  readonly #options: SignInBackOffOptions
  /** In the order of their last failure, so that the oldest make room. Names and addresses do not push each other out. */
  readonly #names = new Map<string, Failures>()
  readonly #networks = new Map<string, Failures>()

  constructor(options: SignInBackOffOptions) {
    this.#options = options
  }

  /** How long to wait, in milliseconds; 0: go ahead, and it counts. */
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

  /** The name is free again; of the address only this attempt is taken back: others may be guessing from there. */
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
    if (all.size >= MAX_REMEMBERED) all.delete(all.keys().next().value ?? '')
    all.set(key, { count: isFresh ? found.count + 1 : 1, lastAt: now })
  }
}
