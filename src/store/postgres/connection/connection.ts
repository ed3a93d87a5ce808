// One connection to a PostgreSQL server that accepts writes. The server is checked once, at connect; durability
// settings are set again inside each transaction that needs them, since a pooler may switch the session.
//
// Statements are pipelined: BEGIN is sent with the first statement if that only reads, and a write with the statement
// after it. The server still runs them one after the other.

import pg from 'pg'
import { startTimeLimit } from '../../../runtime/time-limit.ts'
import { StoreFailure } from '../../contract/failure.ts'
import type { Host } from './address.ts'
import type { BindMessage } from './bind-message.ts'
import { BoundQuery } from './bound-query.ts'
import { endsConnection, notAcknowledged, sqlState, storeFailure } from './failure.ts'
import { requireSupportedServer, type ServerName } from './supported-server.ts'

const CONNECT_TIMEOUT_MS = 3000
/** The server gives up a statement after this long, and the client a little later. */
const STATEMENT_TIMEOUT_MS = 30_000
const QUERY_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 5000

const TRANSACTION_ABORTED = '25P02'

/**
 * Plans are cached for the life of a session: a plan made while a table was small must not scan it when it is large.
 * With enable_seqscan = off, servers before 18 rate an unavoidable scan (of a table with one row, say) as so costly
 * that they compile it every time: 84 ms instead of 0.03 ms.
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
  current_setting('synchronous_standby_names') <> '' AS synchronous_standby,
  version() AS version_text, EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS has_citus`
/** For a server that does not understand `SESSION`. */
const NAME = 'SELECT version() AS version_text, false AS has_citus'

/** SET LOCAL as a statement that changes nothing if the session already has the value. */
const BEGIN = `BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT set_config('synchronous_commit', 'on', true)
WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')`

export interface ServerFacts extends ServerName {
  readonly read_only: boolean
  readonly version: string
  readonly version_number: number
  readonly encoding: string
  readonly fsync: string
  readonly synchronous_commit: string
  readonly synchronous_standby: boolean
}

/** A statement that is prepared once per connection, under its name. */
export interface Statement {
  readonly name: string
  readonly text: string
}

type Config = pg.QueryConfig & { readonly query_timeout?: number }

export type Value = string | number | boolean | null | Uint8Array
export type Row = Record<string, unknown>

const BIGINT = 20
/** Our ids and times fit exactly into a JavaScript number. */
const types = {
  getTypeParser: (oid: number, format: 'text') => (oid === BIGINT ? Number : pg.types.getTypeParser(oid, format)),
} as unknown as pg.CustomTypesConfig

export class Connection {
  readonly host: Host
  readonly #client: pg.Client
  #server: ServerFacts | null = null
  #warning: string | null = null
  /** Statements without an answer yet, and those of them that no caller awaits. */
  #underWay = 0
  #sent: Promise<unknown>[] = []
  /** The failure that aborted the transaction: its later statements fail with it. */
  #cause: StoreFailure | null = null
  /** Sum of the timeouts of the `cells` calls in flight. */
  #cellsMs = 0
  #broken = false
  #isDestroyed = false
  #isGathering = false
  #onEnd: () => void = () => {}

  private constructor(host: Host) {
    this.host = host
    this.#client = new pg.Client({
      connectionString: host.connectionString,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      fallback_application_name: 'intray',
      pipeline: true,
      types,
    })
    // Without a listener, an idle connection that breaks would end the process.
    this.#client.on('error', () => this.#end())
    this.#client.on('end', () => this.#end())
    // 01: a warning, such as a cancelled wait for the standby. 57: cut short by a shutdown. 25: no transaction to
    // commit. Matched by code, since the severity text is in the server's language.
    this.#client.on('notice', ({ code, message }) => {
      if (code && /^(01|57|25)/.test(code)) this.#warning = message ?? code
    })
  }

  /** Connects and reads the server's facts. */
  static async open(host: Host): Promise<Connection> {
    const connection = new Connection(host)
    try {
      await connection.#connect()
      const results = await connection.#beginSession()
      connection.#server = results.at(-1)!.rows[0]!
      requireSupportedServer(connection.#server)
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

  /**
   * The cells of its one row, as PostgreSQL wrote them. Times out after `timeoutMs` plus the timeouts of the calls
   * before it.
   */
  async cells(statement: Statement, message: BindMessage, timeoutMs: number): Promise<readonly unknown[]> {
    this.#cellsMs += timeoutMs
    try {
      return await this.#ask(new BoundQuery(statement, message, this.#cellsMs))
    } finally {
      this.#cellsMs -= timeoutMs
    }
  }

  /** Rows as arrays of cells, in column order. */
  async rows<T extends readonly unknown[]>(statement: Statement | string, values: readonly Value[]): Promise<T[]> {
    const config = { ...textOf(statement), values: values as Value[], rowMode: 'array' as const }
    return (await this.#ask<pg.QueryArrayResult>(config)).rows as unknown as T[]
  }

  /** Returns the number of changed rows. */
  async execute(statement: Statement | string, values: readonly Value[] = []): Promise<number> {
    const { rowCount } = await this.#ask<pg.QueryResult>({ ...textOf(statement), values: values as Value[] })
    return rowCount ?? 0
  }

  /** Several statements without values, in one message. */
  async script(text: string, timeoutMs = QUERY_TIMEOUT_MS): Promise<void> {
    await this.#ask({ text, query_timeout: timeoutMs })
  }

  /** In a transaction: sends without waiting. If it fails, so does the next awaited statement, at the latest the commit. */
  send(statement: Statement | string, values: readonly Value[] = []): void {
    this.#send({ ...textOf(statement), values: values as Value[] })
  }

  /**
   * If the first statement only reads or locks, BEGIN is sent with it. If it writes, BEGIN is awaited first: if only
   * BEGIN failed, the write would commit by itself.
   */
  async transaction<T>(work: () => Promise<T>, first: 'reads' | 'writes' = 'writes'): Promise<T> {
    if (first === 'reads') this.#send({ text: BEGIN })
    else await this.script(BEGIN)
    let isOver = false
    try {
      const result = await work()
      isOver = true
      const { command } = await this.#ask<pg.QueryResult>({ text: 'COMMIT' })
      // COMMIT of a failed transaction answers ROLLBACK, without an error.
      if (command !== 'COMMIT') throw notAcknowledged(`it answered ${command}`)
      return result
    } catch (error) {
      this.#sent = []
      // If this fails too, closing the connection rolls back.
      if (!isOver && !this.#broken) await this.script('ROLLBACK').catch(() => this.destroy())
      throw error
    }
  }

  /**
   * In a transaction that wrote nothing yet: releases its locks and begins again. The next statement must read or lock,
   * as after BEGIN.
   */
  startOver(): void {
    this.#send({ text: 'ROLLBACK' })
    this.#send({ text: BEGIN })
  }

  /** Runs `work` in a savepoint. If its data is rejected, rolls it back, and the transaction goes on. */
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

  /** Sends Terminate, then closes. */
  async close(): Promise<void> {
    this.#broken = true
    await this.#client.end().catch(() => {})
  }

  /** Closes at once: statements in flight are left to the server. */
  destroy(): void {
    if (this.#isDestroyed) return
    this.#isDestroyed = true
    this.#end()
    void this.#client.end().catch(() => {})
    this.#client.connection.stream.destroy()
  }

  /** The limit of `pg` would run out while this process stands still, with the server's answer at hand. */
  async #connect(): Promise<void> {
    const tooLate = Promise.withResolvers<never>()
    const endLimit = startTimeLimit(CONNECT_TIMEOUT_MS, () => tooLate.reject(new Error('timeout expired')))
    try {
      await Promise.race([this.#client.connect(), tooLate.promise])
    } finally {
      endLimit()
    }
  }

  async #beginSession(): Promise<pg.QueryResult<ServerFacts>[]> {
    try {
      return (await this.#client.query(SESSION)) as unknown as pg.QueryResult<ServerFacts>[]
    } catch (error) {
      const named = await this.#client.query<ServerName>(NAME).catch(() => null)
      if (named) requireSupportedServer(named.rows[0]!)
      throw error
    }
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
    // Set by this statement's events, which TypeScript cannot see.
    const warning = this.#warning as string | null
    if (warning !== null) {
      // The warning may belong to any statement in flight: later ones fail as well, here or because the connection is closed.
      if (this.#underWay > 0) this.destroy()
      throw notAcknowledged(warning)
    }
    return result
  }

  /**
   * Corks the socket for this turn: its statements go out in one write, since each write costs a system call and wakes
   * the server.
   */
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
