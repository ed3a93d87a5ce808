// The connections of one process: at most so many, made when needed, to the host that takes writes.
//
// - Hosts are tried in turn, beginning with the one that worked last; a standby is passed over.
// - When none works, whoever asks is refused at once until a pause is over (0.1 s, doubling up to 2 s): a service that
//   cannot write has to say so quickly, and a database that comes back must not be run over.
// - One of them is shared by those whose statements may stand in a row: it is kept for them until it breaks.
// - A connection that broke, or reached a server that no longer takes writes, is thrown away.

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

/** Why no host could be used: one entry for each. */
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

  /** One or more statements, each in a transaction of its own. */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.acquire()
    try {
      return await work(connection)
    } finally {
      this.release(connection)
    }
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

  /** For single statements, which the server then runs in the order they are sent. Never released by whoever asks. */
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

  /** The way to the server fell silent: what is idle cannot be trusted either. */
  dropIdle(): void {
    for (const connection of this.#idle.splice(0)) {
      this.#open -= 1
      connection.destroy()
    }
  }

  /** What is still in use is closed when it is released; what is shared, at once. */
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

  /** A place is free: whoever waits longest gets a connection of its own. */
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

  /** One that is idle or shared and broke: its place is free. One in use is counted when it is released. */
  #forget(connection: Connection): void {
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
    else if (this.#shared !== connection) return
    else this.#shared = this.#sharing = null
    this.#open -= 1
    this.#serveWaiting()
  }
}
