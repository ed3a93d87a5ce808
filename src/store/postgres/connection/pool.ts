// Connection pool of one process: a bounded number of connections to the host that accepts writes, opened on demand.
//
// - Hosts are tried in turn, starting with the last one that worked; standbys are skipped.
// - When no host works, callers are refused at once until a pause is over (0.1 s, doubling up to 2 s): a service that
//   cannot write must say so quickly, and a recovering database must not be flooded.
// - One connection is shared by callers whose single statements may be pipelined; it is reserved for them until it
//   breaks.
// - A connection that broke, or whose server no longer accepts writes, is discarded.

import { StoreFailure } from '../../contract/failure.ts'
import type { Address, Host } from './address.ts'
import { Connection } from './connection.ts'
import { messageOf, storeFailure } from './failure.ts'

const ACQUIRE_TIMEOUT_MS = 10_000
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2000

interface Waiting {
  readonly timer: NodeJS.Timeout
  resolve(connection: Connection): void
  reject(failure: StoreFailure): void
}

/** Why no host could be used, one entry per host. */
export class NoHost extends StoreFailure {
  readonly reasons: readonly { readonly host: Host; readonly error: unknown }[]

  constructor(reasons: NoHost['reasons']) {
    const list = reasons.map(({ host, error }) => `${host.name}: ${messageOf(error)}`)
    super('unavailable', `no host takes writes (${list.join('; ')})`)
    this.reasons = reasons
  }
}

export class StandbyOnly extends Error {
  constructor() {
    super('a standby, or set to read only')
  }
}

export class Pool {
  readonly #address: Address
  readonly #idle: Connection[] = []
  readonly #waiting: Waiting[] = []
  #open = 0
  #current = 0
  #pauseMs = 0
  #refusedUntil = 0
  #lastFailure: NoHost | null = null
  #isClosed = false
  #sharing: Promise<Connection> | null = null
  #shared: Connection | null = null

  constructor(address: Address) {
    this.#address = address
  }

  get size(): number {
    return this.#address.poolSize
  }

  /** Runs one or more statements, each in its own transaction. */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.acquire()
    try {
      return await work(connection)
    } finally {
      this.release(connection)
    }
  }

  /**
   * Runs a single statement that every request needs, such as the look-up of a token. If all connections are in use, it
   * goes over the shared one instead of waiting for a free one.
   */
  async lookUp<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    if (this.#idle.length > 0 || this.#open < this.#address.poolSize) return this.use(work)
    return work(await this.shared())
  }

  transaction<T>(work: (connection: Connection) => Promise<T>, first?: 'reads' | 'writes'): Promise<T> {
    return this.use((connection) => connection.transaction(() => work(connection), first))
  }

  async acquire(): Promise<Connection> {
    const idle = this.#idle.pop()
    if (idle) return idle
    if (this.#open < this.#address.poolSize) return this.#connect()
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
        reject(new StoreFailure('unavailable', `all ${this.#address.poolSize} connections to the database are busy`))
      }, ACQUIRE_TIMEOUT_MS)
      const waiting: Waiting = { timer, resolve, reject }
      this.#waiting.push(waiting)
    })
  }

  /** The shared connection, for single statements; the server runs them in the order sent. Callers never release it. */
  async shared(): Promise<Connection> {
    for (;;) {
      if (this.#isClosed) throw new StoreFailure('unavailable', 'the connections to the database are closed')
      this.#sharing ??= this.#share()
      const connection = await this.#sharing
      if (!connection.isBroken) return connection
      this.#forget(connection)
    }
  }

  release(connection: Connection): void {
    if (connection.isBroken) {
      this.#open -= 1
      this.#serveWaiting()
      return
    }
    const next = this.#nextWaiting()
    if (next) next.resolve(connection)
    else if (this.#isClosed) void connection.close()
    else this.#idle.push(connection)
  }

  /** The server does not answer: idle connections cannot be trusted either. */
  dropIdle(): void {
    for (const connection of this.#idle.splice(0)) {
      this.#open -= 1
      connection.destroy()
    }
  }

  /** Closes idle and shared connections at once, those in use when they are released. */
  async close(): Promise<void> {
    this.#isClosed = true
    const shared = (await this.#sharing?.catch(() => null)) ?? []
    await Promise.all(
      this.#idle
        .splice(0)
        .concat(shared)
        .map((connection) => connection.close()),
    )
  }

  /** A slot is free: opens a connection for the caller that waits longest. */
  #serveWaiting(): void {
    const next = this.#nextWaiting()
    if (!next) return
    this.#connect().then(next.resolve, (error: unknown) => {
      next.reject(storeFailure(error))
      this.#serveWaiting()
    })
  }

  #nextWaiting(): Waiting | undefined {
    const next = this.#waiting.shift()
    clearTimeout(next?.timer)
    return next
  }

  async #connect(): Promise<Connection> {
    if (this.#lastFailure && performance.now() < this.#refusedUntil) throw this.#lastFailure
    this.#open += 1
    try {
      const connection = await this.#tryHosts()
      this.#pauseMs = 0
      this.#lastFailure = null
      connection.onEnd(() => this.#forget(connection))
      return connection
    } catch (error) {
      this.#open -= 1
      this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * this.#pauseMs))
      this.#refusedUntil = performance.now() + this.#pauseMs * (0.5 + Math.random() / 2)
      this.#lastFailure = error as NoHost
      throw error
    }
  }

  async #tryHosts(): Promise<Connection> {
    const { hosts } = this.#address
    const reasons: { host: Host; error: unknown }[] = []
    const start = this.#current
    for (let n = 0; n < hosts.length; n++) {
      const at = (start + n) % hosts.length
      const host = hosts[at]!
      try {
        const connection = await Connection.open(host)
        if (!connection.server.read_only) {
          this.#current = at
          return connection
        }
        void connection.close()
        throw new StandbyOnly()
      } catch (error) {
        reasons.push({ host, error })
      }
    }
    throw new NoHost(reasons)
  }

  async #share(): Promise<Connection> {
    try {
      let connection = await this.acquire()
      while (connection.isBroken) {
        this.release(connection)
        connection = await this.acquire()
      }
      this.#shared = connection
      return connection
    } catch (error) {
      this.#sharing = null
      throw error
    }
  }

  /** Frees the slot of a broken connection that was idle or shared. One in use is counted at its release. */
  #forget(connection: Connection): void {
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
    else if (this.#shared !== connection) return
    else this.#shared = this.#sharing = null
    this.#open -= 1
    this.#serveWaiting()
  }
}
