// Who guesses has to wait: after so many failures in a row a name, or an address, is answered only after a pause that
// doubles with each further one, up to a minute. It holds up signing in and nothing else: a session that is open stays
// usable, and a link signs in whatever was tried with the name.
//
// An attempt counts as failed until it has succeeded: a hundred at once are a hundred failures.

import type { Clock } from '../runtime/clock.ts'

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
  /** In the order of their last failure, so that the oldest make room. */
  readonly #failures = new Map<string, Failures>()

  constructor(options: SignInBackOffOptions) {
    this.#options = options
  }

  /** How long to wait, in milliseconds; 0: go ahead, and it counts. */
  attempt(name: string | null, address: string): number {
    const { free } = this.#options
    const keys: [key: string, free: number][] = [[`address:${address}`, ADDRESS_FACTOR * free]]
    if (name !== null) keys.push([`name:${name}`, free])
    const waitMs = Math.max(...keys.map(([key, allowed]) => this.#waitMs(key, allowed)))
    if (waitMs > 0) return waitMs
    for (const [key] of keys) this.#count(key)
    return 0
  }

  succeeded(name: string | null, address: string): void {
    this.#failures.delete(`address:${address}`)
    if (name !== null) this.#failures.delete(`name:${name}`)
  }

  #waitMs(key: string, free: number): number {
    const found = this.#failures.get(key)
    if (!found || found.count < free) return 0
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (found.count - free), LONGEST_PAUSE_MS)
    return Math.max(0, found.lastAt + pauseMs - this.#options.clock.now())
  }

  #count(key: string): void {
    const now = this.#options.clock.now()
    const found = this.#failures.get(key)
    const isFresh = found !== undefined && now - found.lastAt < FORGET_MS
    this.#failures.delete(key)
    if (this.#failures.size >= MAX_REMEMBERED) this.#failures.delete(this.#failures.keys().next().value ?? '')
    this.#failures.set(key, { count: isFresh ? found.count + 1 : 1, lastAt: now })
  }
}
