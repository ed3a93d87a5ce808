// How long a server that stops goes on serving while /readyz says "not ready", so that proxies send requests elsewhere before
// its port closes. By itself it waits only for trusted proxies that ask /readyz regularly: each gets that answer often enough to believe
// it. A server that no proxy asks stops at once.

import { createIsTrusted } from './wire/client-address.ts'

export interface ReadyDelayOptions {
  readonly readyDelay: number | 'auto'
  /** The longest that `auto` lasts. */
  readonly autoMaxMs: number
  readonly trustedProxies: readonly string[]
  readonly now: () => number
}

/** Two questions within this time are regular ones. */
const REGULAR_MS = 10_000
/** HAProxy's own default; most proxies believe it sooner. */
const TIMES_ANSWERED = 3

interface Asker {
  readonly lastAt: number
  readonly beforeAt: number
}

export class ReadyDelay {
  readonly #options: ReadyDelayOptions
  readonly #isTrusted: (address: string | undefined) => boolean
  readonly #askers = new Map<string, Asker>()
  /** How often each must still get that answer; null while the server does not stop. */
  #left: Map<string, number> | null = null
  readonly #allAnswered = Promise.withResolvers<void>()

  constructor(options: ReadyDelayOptions) {
    this.#options = options
    this.#isTrusted = createIsTrusted(options.trustedProxies)
  }

  /** Notes who asked: a proxy itself, and not one of its clients, whose address is another. */
  asked(address: string | undefined): void {
    if (address === undefined || !this.#isTrusted(address)) return
    if (this.#left) this.#answered(address)
    else this.#note(address)
  }

  /** Called once, when /readyz begins to say "not ready". Resolves when the port may close. */
  async pass(): Promise<void> {
    const { readyDelay, autoMaxMs, now } = this.#options
    if (readyDelay === 0) return
    if (readyDelay === 'auto') {
      const regular = [...this.#askers].filter(([, { beforeAt }]) => now() - beforeAt <= REGULAR_MS)
      if (regular.length === 0) return
      this.#left = new Map(regular.map(([address]) => [address, TIMES_ANSWERED]))
    }
    const timer = Promise.withResolvers<void>()
    const timeout = setTimeout(timer.resolve, readyDelay === 'auto' ? autoMaxMs : readyDelay)
    await Promise.race([timer.promise, this.#allAnswered.promise])
    clearTimeout(timeout)
  }

  #note(address: string): void {
    const now = this.#options.now()
    for (const [other, { lastAt }] of this.#askers) {
      if (now - lastAt > REGULAR_MS) this.#askers.delete(other)
    }
    this.#askers.set(address, { lastAt: now, beforeAt: this.#askers.get(address)?.lastAt ?? -Infinity })
  }

  #answered(address: string): void {
    const left = this.#left!.get(address)
    if (left === undefined) return
    if (left > 1) this.#left!.set(address, left - 1)
    else this.#left!.delete(address)
    if (this.#left!.size === 0) this.#allAnswered.resolve()
  }
}
