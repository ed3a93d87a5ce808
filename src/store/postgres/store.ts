// The PostgreSQL store: composes its parts. Any number of servers and commands use one database; they share no state
// but the database.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { IdGap } from '../../model/id-gaps.ts'
import { FairSlots } from '../../runtime/fair-slots.ts'
import { appendApart } from '../append-apart.ts'
import { callsInTurn, MAX_WAITING, payloadsInTurn } from '../calls-in-turn.ts'
import type { MoveSide } from '../contract/tenant-move.ts'
import { DatabaseMissing, StoreFailure, StoreRefused } from '../contract/failure.ts'
import type { Store, StoreOptions } from '../contract/store.ts'
import { FROZEN } from '../copy-state.ts'
import { createJsonPages } from '../json-pages.ts'
import { copyProblem, PostgresCopy } from './admin/copy.ts'
import { dropStaleNoting, isFrozen } from './admin/copy-triggers.ts'
import { createEndpointStore } from './admin/endpoints.ts'
import { createErasureStore } from './admin/erasures.ts'
import { createDiagnosis } from './admin/diagnosis.ts'
import { readMetrics } from './admin/metrics.ts'
import { createNodes } from './admin/nodes.ts'
import { createOperatorStore } from './admin/operators.ts'
import { createRefusalStore } from './admin/refusals.ts'
import { createRetentionStore } from './admin/retention.ts'
import { createHookStore } from './admin/hooks.ts'
import { createTokenStore } from './admin/tokens.ts'
import { createTransferStore } from './admin/transfer.ts'
import { type Address, parseAddress } from './connection/address.ts'
import type { Connection } from './connection/connection.ts'
import { messageOf, sqlState, storeFailure } from './connection/failure.ts'
import { NoHost, Pool, StandbyOnly } from './connection/pool.ts'
import { createRecovery, readEpochs, readGaps } from './admin/recovery.ts'
import { createInboxReader } from './index/inbox.ts'
import { createIndexing } from './index/indexing.ts'
import { createTrafficReader } from './index/traffic.ts'
import { createAppend } from './journal/append.ts'
import { createEventReader } from './journal/events.ts'
import { createFollower } from './journal/follow.ts'
import { createProcessing } from './processing/processing.ts'
import { type Identity, prepareSchema, readIdentity, readSchema } from './schema.ts'

const OLDEST_VERSION = 150_000
/**
 * The next batch is with the server before the last one is answered, on the same connection. Two, not more: a batch costs the
 * server and us nearly as much as ten messages, so few large ones beat many small ones (docs/internals/adr/0033).
 */
const APPENDS_IN_FLIGHT = 2

/**
 * Reads of tenants use at most this part of the pool, and so do claims, acks and their like; one tenant at most half of it:
 * the others are left to indexing, and to the other tenants.
 */
const TENANTS_SHARE = 2

const PROBE = `INSERT INTO intray.meta (key, value) VALUES ('probe', '\\x01')
  ON CONFLICT (key) DO UPDATE SET value = excluded.value`

export async function openPostgresCopy(url: string, mustExist: boolean): Promise<MoveSide> {
  const address = parseAddress(url)
  const pool = new Pool(address)
  try {
    await pool.use(async (connection) => {
      await prepare(connection, address, { role: 'tool', mustExist })
    })
    return new PostgresCopy(pool)
  } catch (error) {
    await pool.close()
    throw refusal(error, address)
  }
}

export async function openPostgresStore(url: string, options: StoreOptions): Promise<Store> {
  const address = parseAddress(url)
  const pool = new Pool(address)
  try {
    const prepared = await pool.use((connection) => prepare(connection, address, options))
    return composeStore(pool, prepared)
  } catch (error) {
    await pool.close()
    throw refusal(error, address)
  }
}

/** What is read once, when the store is opened. */
interface Prepared {
  readonly facts: Store['facts']
  readonly identity: Identity
  readonly gaps: readonly IdGap[]
  /** Those of restores. */
  readonly epochs: readonly IdGap[]
}

async function prepare(connection: Connection, address: Address, { role, mustExist }: StoreOptions): Promise<Prepared> {
  const { server } = connection
  if (server.version_number < OLDEST_VERSION) {
    throw new StoreRefused(`PostgreSQL ${server.version} is too old: Intray needs 15 or newer.`)
  }
  if (server.encoding !== 'UTF8') {
    throw new StoreRefused(
      `The database ${address.database} has the encoding ${server.encoding}. Create one with ENCODING 'UTF8'.`,
    )
  }
  const { restore } = address
  if (mustExist && (await readSchema(connection, { restore })).isNew) {
    throw new DatabaseMissing(`The database ${address.database} has no Intray data. Check its URL.`)
  }
  const schemaVersion = await prepareSchema(connection, role, { restore })
  const problem = role === 'server' ? await copyProblem(connection) : null
  if (problem) throw new StoreRefused(problem)
  if (role === 'server') await dropStaleNoting(connection)
  const identity = await readIdentity(connection)
  return {
    identity,
    gaps: await readGaps(connection),
    epochs: await readEpochs(connection),
    facts: {
      driver: 'postgres',
      hosts: address.hosts.map(({ name }) => name).join(','),
      database: address.database,
      postgres_version: server.version,
      // As the session began; every append sets `on` again if needed.
      synchronous_commit: server.synchronous_commit,
      synchronous_standby: server.synchronous_standby ? 'yes' : 'no',
      fsync: server.fsync,
      pool_size: address.poolSize,
      schema_version: schemaVersion,
      database_uuid: identity.databaseUuid,
    },
  }
}

function composeStore(pool: Pool, { facts, identity, gaps, epochs }: Prepared): Store {
  const append = createAppend(pool, identity.dedupeKey)
  const nodes = createNodes(pool)
  const processing = createProcessing(pool, identity.dedupeKey)
  const { countDead, countSettled, history, counts, states, lastErrors, subscriptions } = processing
  const refusals = createRefusalStore(pool)
  const events = createEventReader(pool, identity.dedupeKey)
  const hooks = createHookStore(pool, events)
  const inbox = createInboxReader(pool, identity.dedupeKey, gaps)
  const lists = createJsonPages({ inbox, states, lastErrors, counts, refusals: refusals.list, turn: nextTurn })
  const readSlots = tenantSlots(pool.size)
  const changeSlots = tenantSlots(pool.size)
  const inTurn = <T extends object>(reads: T): T => callsInTurn(reads, readSlots)
  const { claim, ack, extend, release, requeue, replay, createSubscription, deleteSubscription } = processing
  const changes = { claim, ack, extend, release, requeue, replay, createSubscription, deleteSubscription }
  const lifecycle = new Lifecycle()
  return {
    traits: { concurrentWriters: true, appendsInFlight: APPENDS_IN_FLIGHT },
    facts,
    journal: { append: appendApart(lifecycle.guard({ append }).append) },
    events: lifecycle.guard(payloadsInTurn(inTurn(events))),
    inbox: lifecycle.guard(inTurn(inbox)),
    lists: lifecycle.guard(inTurn(lists)),
    follow: lifecycle.guard(inTurn(createFollower(pool))),
    index: lifecycle.guard(createIndexing(pool, identity.dedupeKey)),
    processing: lifecycle.guard({
      ...processing,
      ...inTurn({ countDead, countSettled, history, counts, states, lastErrors, subscriptions }),
      ...callsInTurn(changes, changeSlots),
    }),
    endpoints: lifecycle.guard(createEndpointStore(pool)),
    tokens: lifecycle.guard(createTokenStore(pool, identity.dedupeKey)),
    hooks: lifecycle.guard({ ...hooks, ...inTurn({ deliveries: hooks.deliveries }) }),
    refusals: lifecycle.guard({ ...refusals, ...inTurn({ list: refusals.list, find: refusals.find }) }),
    erasures: lifecycle.guard(createErasureStore(pool, identity, epochs)),
    retention: lifecycle.guard(createRetentionStore(pool, identity.dedupeKey)),
    operators: lifecycle.guard(createOperatorStore(pool)),
    traffic: lifecycle.guard(inTurn(createTrafficReader(pool))),
    metrics: { read: (now) => pool.use((connection) => readMetrics(connection, now)) },
    nodes: lifecycle.guard({ report: nodes.report, remove: nodes.remove, live: nodes.live }),
    transfer: lifecycle.guard(createTransferStore(pool, identity.dedupeKey)),
    recovery: lifecycle.guard(createRecovery(pool, gaps)),
    diagnosis: lifecycle.guard(createDiagnosis(pool)),
    ...lifecycle.guard({
      probe: () =>
        pool.transaction(async (connection) => {
          if (await isFrozen(connection)) throw new StoreFailure('unavailable', FROZEN)
          await connection.query(PROBE)
        }),
    }),
    onFatal: (listener) => lifecycle.onFatal(listener),
    onDamage: (listener) => lifecycle.onDamage(listener),
    close: () =>
      lifecycle.close(async () => {
        nodes.stop()
        await pool.close()
      }),
  }
}

function tenantSlots(poolSize: number): FairSlots {
  const slots = Math.max(1, Math.floor(poolSize / TENANTS_SHARE))
  return new FairSlots({ slots, maxPerHolder: Math.ceil(slots / 2), maxWaitingPerHolder: MAX_WAITING })
}

const SAY_DAMAGED_EVERY_MS = 10 * 60_000

/** What every call of the store goes through: refused after the close, waited for by it, failing in one kind of failure. */
class Lifecycle {
  /** Counted, not collected (docs/internals/adr/0002). */
  #underWay = 0
  readonly #idle = Promise.withResolvers<void>()
  readonly #fatalListeners: ((failure: Error) => void)[] = []
  #fatal: StoreFailure | null = null
  #closed: Promise<void> | null = null
  readonly #damageListeners: ((finding: string) => void)[] = []
  #damageSaidAt = Number.NEGATIVE_INFINITY

  guard<T extends object>(capability: T): T {
    const guarded = Object.entries(capability as Record<string, (...args: readonly unknown[]) => Promise<unknown>>).map(
      ([name, call]) => [name, (...args: readonly unknown[]) => this.#run(() => call(...args))] as const,
    )
    return Object.fromEntries(guarded) as T
  }

  /** A listener added after a failure is called at once. */
  onFatal(listener: (failure: Error) => void): void {
    if (this.#fatal) listener(this.#fatal)
    else this.#fatalListeners.push(listener)
  }

  onDamage(listener: (finding: string) => void): void {
    this.#damageListeners.push(listener)
  }

  close(end: () => Promise<void>): Promise<void> {
    this.#closed ??= (async () => {
      if (this.#underWay > 0) await this.#idle.promise
      await end()
    })()
    return this.#closed
  }

  async #run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new StoreFailure('unavailable', 'the store is closed')
    this.#underWay += 1
    try {
      return await call()
    } catch (error) {
      const failure = storeFailure(error)
      if (failure.kind === 'fatal') this.#announce(failure)
      if (failure.kind === 'damaged') this.#sayDamaged(failure)
      throw failure
    } finally {
      this.#underWay -= 1
      if (this.#closed && this.#underWay === 0) this.#idle.resolve()
    }
  }

  #sayDamaged({ message }: StoreFailure): void {
    if (performance.now() - this.#damageSaidAt < SAY_DAMAGED_EVERY_MS) return
    this.#damageSaidAt = performance.now()
    for (const listener of this.#damageListeners) listener(`${message}: ./intray doctor names the rows`)
  }

  #announce(failure: StoreFailure): void {
    if (this.#fatal) return
    this.#fatal = failure
    for (const listener of this.#fatalListeners.splice(0)) listener(failure)
  }
}

/** Why the database could not be opened: a sentence that says what to do and names no secret. */
function refusal(error: unknown, address: Address): Error {
  if (error instanceof StoreRefused) return error
  if (error instanceof NoHost) {
    return new StoreRefused(
      error.reasons.map(({ host, error: reason }) => unreachable(host.name, reason, address)).join(' '),
    )
  }
  const failure = storeFailure(error)
  if (sqlState(failure.cause) === '42501') {
    return new StoreRefused(
      `The user may not create tables in the database ${address.database} (${failure.message}). ` +
        'Make it the owner of the database.',
    )
  }
  return new StoreRefused(`The database ${address.database} could not be opened: ${failure.message}.`)
}

function unreachable(host: string, error: unknown, { database }: Address): string {
  if (error instanceof StoreRefused) return error.message
  if (error instanceof StandbyOnly)
    return `${host} takes no writes: it is a standby, or read-only. Name the primary in INTRAY_DATABASE_URL.`
  const message = messageOf(error)
  const code = sqlState(error)
  if (code === '3D000') return `${host} has no database ${database}. Create it first: CREATE DATABASE ${database}.`
  if (code?.startsWith('28'))
    return `${host} refused the login: ${message}. Check user and password in INTRAY_DATABASE_URL.`
  if (code) return `${host} refused the connection: ${message}.`
  return `PostgreSQL cannot be reached at ${host}: ${message}.`
}
