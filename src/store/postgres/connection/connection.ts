// One connection to a server that takes writes. It is looked at once, when it is made; what durability rests on is set
// again inside each transaction that needs it, since a pooler may change the session under us.
//
// Statements are sent without waiting for the answer to the one before: a transaction's BEGIN travels with its first
// statement where that only looks, and what only writes with whatever comes behind it. The server still runs them one
// after the other.

import pg from 'pg'
import { StoreFailure } from '../../contract/failure.ts'
import type { Host } from './address.ts'
import type { BindMessage } from './bind-message.ts'
import { BoundQuery } from './bound-query.ts'
import { endsConnection, notAcknowledged, sqlState, storeFailure } from './failure.ts'

const CONNECT_TIMEOUT_MS = 3000
/** A statement that is still running then is given up, by the server and (a little later) by us. */
const STATEMENT_TIMEOUT_MS = 30_000
const QUERY_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 5000

const TRANSACTION_ABORTED = '25P02'

/**
 * Plans are kept for the life of a session: one that was made while a table was small must not scan it when it is not. Servers before 18
 * then take a scan that cannot be avoided (of a table with one row, say) for so costly that they compile it, every time: 84 ms instead of 0.03.
 */
const SESSION = `SET enable_seqscan = off;
SET jit = off;
SET statement_timeout = ${STATEMENT_TIMEOUT_MS};
SET idle_in_transaction_session_timeout = ${2 * STATEMENT_TIMEOUT_MS};
SET client_min_messages = warning;
SET default_transaction_isolation = 'read committed';
SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS read_only,
  current_setting('server_version') AS version, current_setting('server_version_num')::int AS version_number,
  current_setting('server_encoding') AS encoding, current_setting('fsync') AS fsync,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('synchronous_standby_names') <> '' AS synchronous_standby`

/** SET LOCAL as a statement that changes nothing where the session is right already. */
const BEGIN = `BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')`

export interface ServerFacts {
  readonly read_only: boolean
  readonly version: string
  readonly version_number: number
  readonly encoding: string
  readonly fsync: string
  readonly synchronous_commit: string
  readonly synchronous_standby: boolean
}

/** A statement that is prepared once for each connection, under its name. */
export interface Statement {
  readonly name: string
  readonly text: string
}

type Config = pg.QueryConfig & { readonly query_timeout?: number }

export type Value = string | number | boolean | null | Uint8Array
export type Row = Record<string, unknown>

const BIGINT = 20
/** Our ids and times are whole numbers that a JavaScript number holds exactly. */
const types = {
  getTypeParser: (oid: number, format: 'text') => (oid === BIGINT ? Number : pg.types.getTypeParser(oid, format)),
} as unknown as pg.CustomTypesConfig

export class Connection {
  readonly host: Host
  readonly #client: pg.Client
  #server: ServerFacts | null = null
  #warning: string | null = null
  /** Statements that the server has not answered yet, and those of them that nobody waits for. */
  #underWay = 0
  #sent: Promise<unknown>[] = []
  /** What made the transaction fail: all that comes after it fails for it, and is told so. */
  #cause: StoreFailure | null = null
  /** The time that the cells under way are given, taken together. */
  #cellsMs = 0
  #broken = false
  #isDestroyed = false
  #isGathering = false
  #onEnd: () => void = () => {}

  private constructor(host: Host) {
    this.host = host
    this.#client = new pg.Client({
      connectionString: host.connectionString,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      fallback_application_name: 'intray',
      pipeline: true,
      types,
    })
    // Without a listener a connection that breaks while nobody waits for it would end the process.
    this.#client.on('error', () => this.#end())
    this.#client.on('end', () => this.#end())
    // 01: a warning, such as a wait for the standby that was cancelled. 57: a shutdown cut it short. 25: there was no
    // transaction to commit. Told apart by code: the word WARNING comes in the language of the server.
    this.#client.on('notice', ({ code, message }) => {
      if (code && /^(01|57|25)/.test(code)) this.#warning = message ?? code
    })
  }

  /** Connects and looks whom it reached. */
  static async open(host: Host): Promise<Connection> {
    const connection = new Connection(host)
    try {
      await connection.#client.connect()
      const results = (await connection.#client.query(SESSION)) as unknown as pg.QueryResult<ServerFacts>[]
      connection.#server = results.at(-1)!.rows[0]!
      return connection
    } catch (error) {
      connection.destroy()
      throw error
    }
  }

  get server(): ServerFacts {
    return this.#server!
  }

  get isBroken(): boolean {
    return this.#broken
  }

  onEnd(listener: () => void): void {
    this.#onEnd = listener
  }

  /** Rows as objects. */
  async query<R = Row>(statement: Statement | string, values: readonly Value[] = []): Promise<R[]> {
    const { rows } = await this.#ask<pg.QueryResult>({ ...textOf(statement), values: values as Value[] })
    return rows as R[]
  }

  /** The cells of its one row, as PostgreSQL wrote them. Given up after `timeoutMs`, and the time of those it stands behind. */
  async cells(statement: Statement, message: BindMessage, timeoutMs: number): Promise<readonly unknown[]> {
    this.#cellsMs += timeoutMs
    try {
      return await this.#ask(new BoundQuery(statement, message, this.#cellsMs))
    } finally {
      this.#cellsMs -= timeoutMs
    }
  }

  /** Rows as arrays of cells, by the order of the columns. */
  async rows<T extends readonly unknown[]>(statement: Statement | string, values: readonly Value[]): Promise<T[]> {
    const config = { ...textOf(statement), values: values as Value[], rowMode: 'array' as const }
    return (await this.#ask<pg.QueryArrayResult>(config)).rows as unknown as T[]
  }

  /** How many rows it changed. */
  async execute(statement: Statement | string, values: readonly Value[] = []): Promise<number> {
    const { rowCount } = await this.#ask<pg.QueryResult>({ ...textOf(statement), values: values as Value[] })
    return rowCount ?? 0
  }

  /** Several statements without values, in one message. */
  async script(text: string, timeoutMs = QUERY_TIMEOUT_MS): Promise<void> {
    await this.#ask({ text, query_timeout: timeoutMs })
  }

  /** In a transaction: sent and not waited for. If it fails, so does what is waited for next, at the latest the commit. */
  send(statement: Statement | string, values: readonly Value[] = []): void {
    this.#send({ ...textOf(statement), values: values as Value[] })
  }

  /**
   * Where the first statement only reads or locks, BEGIN travels with it. Where it writes, BEGIN is waited for: if that alone were to
   * fail, the write would stand by itself.
   */
  async transaction<T>(work: () => Promise<T>, first: 'reads' | 'writes' = 'writes'): Promise<T> {
    if (first === 'reads') this.#send({ text: BEGIN })
    else await this.script(BEGIN)
    let isOver = false
    try {
      const result = await work()
      isOver = true
      const { command } = await this.#ask<pg.QueryResult>({ text: 'COMMIT' })
      // A transaction that failed half-way answers COMMIT with ROLLBACK, and with no error.
      if (command !== 'COMMIT') throw notAcknowledged(`it answered ${command}`)
      return result
    } catch (error) {
      this.#sent = []
      // If this fails too, the end of the connection rolls back.
      if (!isOver && !this.#broken) await this.script('ROLLBACK').catch(() => this.destroy())
      throw error
    }
  }

  /**
   * In a transaction that wrote nothing so far: lets go of what it locked, and begins anew. What follows reads or locks first, as in one that
   * began like that.
   */
  startOver(): void {
    this.#send({ text: 'ROLLBACK' })
    this.#send({ text: BEGIN })
  }

  /** Runs `work`; if it fails for its data, nothing of it stays, and the transaction goes on. */
  async savepoint(work: () => Promise<void>): Promise<StoreFailure | null> {
    await this.script('SAVEPOINT one')
    try {
      await work()
      await this.script('RELEASE SAVEPOINT one')
      return null
    } catch (error) {
      const failure = storeFailure(error)
      if (failure.kind !== 'rejected') throw failure
      await this.script('ROLLBACK TO SAVEPOINT one; RELEASE SAVEPOINT one')
      return failure
    }
  }

  /** Says good-bye and goes. */
  async close(): Promise<void> {
    this.#broken = true
    await this.#client.end().catch(() => {})
  }

  /** Goes without a word: whatever was under way is left to the server. */
  destroy(): void {
    if (this.#isDestroyed) return
    this.#isDestroyed = true
    this.#end()
    void this.#client.end().catch(() => {})
    this.#client.connection.stream.destroy()
  }

  #send(config: pg.QueryConfig): void {
    const sent = this.#run(config)
    sent.catch(() => {})
    this.#sent.push(sent)
  }

  async #ask<T>(config: Config | BoundQuery): Promise<T> {
    const asked = this.#run<T>(config)
    if (this.#sent.length === 0) return asked
    for (const outcome of await Promise.allSettled([...this.#sent.splice(0), asked])) {
      if (outcome.status === 'rejected') throw outcome.reason
    }
    return asked
  }

  async #run<T>(config: Config | BoundQuery): Promise<T> {
    if (this.#broken) throw new StoreFailure('unavailable', 'the connection to the database is gone')
    if (this.#underWay === 0) this.#warning = null
    this.#underWay += 1
    this.#gather()
    let result: T
    try {
      const asked = config instanceof BoundQuery ? config.ask(this.#client) : this.#client.query(config)
      result = (await asked) as unknown as T
    } catch (error) {
      const failure = storeFailure(error)
      if (endsConnection(failure)) this.destroy()
      if (sqlState(failure.cause) === TRANSACTION_ABORTED && this.#cause) throw this.#cause
      this.#cause = failure
      throw failure
    } finally {
      this.#underWay -= 1
    }
    // Set by the events of this statement, which TypeScript cannot see.
    const warning = this.#warning as string | null
    if (warning !== null) {
      // Whose it is cannot be told: those behind it fail as well, here or for want of a connection.
      if (this.#underWay > 0) this.destroy()
      throw notAcknowledged(warning)
    }
    return result
  }

  /** What is said before the turn is over goes out in one piece: each piece costs a call of the kernel and wakes the server. */
  #gather(): void {
    if (this.#isGathering) return
    this.#isGathering = true
    const { stream } = this.#client.connection
    stream.cork()
    process.nextTick(() => {
      this.#isGathering = false
      stream.uncork()
    })
  }

  #end(): void {
    this.#broken = true
    this.#onEnd()
  }
}

function textOf(statement: Statement | string): { text: string } | Statement {
  return typeof statement === 'string' ? { text: statement } : statement
}
