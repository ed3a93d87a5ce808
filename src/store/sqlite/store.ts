// The SQLite store: composes its parts. A server writes the journal and the index in one thread each and reads on a
// read-only connection; a command does all of it in its own process, beside a server or alone.

import type { DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../contract/failure.ts'
import type { Store, StoreOptions } from '../contract/store.ts'
import { appendValid } from '../validate-items.ts'
import { copyProblem } from './admin/copy.ts'
import { createDiagnosis } from './admin/diagnosis.ts'
import { readMetrics } from './admin/metrics.ts'
import { readNodes } from './admin/nodes.ts'
import { prepareOperatorReads } from './admin/operators.ts'
import { findRefusal, listRefusals } from './admin/refusals.ts'
import { prepareTokenReads } from './admin/tokens.ts'
import {
  CHECKPOINT_PAGES,
  openConnection,
  readSynchronous,
  refusal,
  sqliteCode,
  readFailure,
  sqliteVersion,
} from './connection.ts'
import { watchingForDamage } from './damage.ts'
import { createInboxReader } from './index/inbox.ts'
import {
  attachIndex,
  needsIndexFile,
  openIndexWriter,
  openReader,
  prepareIndexFile,
  refuseLostJournal,
} from './index/index-file.ts'
import { readProgress } from './index/indexing.ts'
import { prepareTrafficReads } from './index/traffic.ts'
import { outcomeOf } from './journal/append.ts'
import { packBatch } from './journal/append-batch.ts'
import { prepareEventReads } from './journal/events.ts'
import { prepareFollow } from './journal/follow.ts'
import { acquireServerLock, isServerRunning } from './lock.ts'
import {
  type Executor,
  type IndexOperations,
  type Operations,
  prepareIndexOperations,
  prepareOperations,
} from './operations.ts'
import { countDead } from './processing/processing.ts'
import { prepareProcessingReads } from './processing/processing-reads.ts'
import { type Clearing, readSubscriptions } from './processing/subscriptions.ts'
import { migrate, needsMigration, readMeta } from './schema.ts'
import { StoreThread } from './threads/thread.ts'

/** The writer commits all waiting batches together: while it works, the next ones are on their way to it. */
const APPENDS_IN_FLIGHT = 8

/** Rows per step when deleting a subscription: each step delays the messages behind it. */
const CLEAR_ROWS = 2000

/** How long a command waits for a starting server to migrate the schema. */
const SERVER_START_MS = 3000

/** The connections of a store. */
interface Parts {
  readonly path: string
  readonly facts: Store['facts']
  readonly writer: Executor<Operations>
  readonly indexer: Executor<IndexOperations>
  readonly reader: DatabaseSync
  /** Called after all of them are closed. */
  readonly release: () => void
}

export async function openSqliteStore(path: string, options: StoreOptions): Promise<Store> {
  refuseLostJournal(path)
  const db = openConnection(path, 'tool')
  try {
    return options.role === 'tool' ? await openToolStore(db, path) : await openServerStore(db, path)
  } catch (error) {
    if (db.isOpen) db.close()
    throw sqliteCode(error) === null ? error : refusal(path, error)
  }
}

async function openToolStore(db: DatabaseSync, path: string): Promise<Store> {
  await waitForServerMigration(db, path)
  const facts = prepareFile(db, path)
  prepareIndexFile(path)
  const served = isServerRunning(path)
  const index = openIndexWriter(path)
  db.exec(`PRAGMA wal_autocheckpoint = ${served ? 0 : CHECKPOINT_PAGES.journal}`)
  index.exec(`PRAGMA wal_autocheckpoint = ${served ? 0 : CHECKPOINT_PAGES.index}`)
  attachIndex(db, path)
  return composeStore({
    path,
    facts,
    writer: runInProcess(db, prepareOperations(db)),
    indexer: runInProcess(index, prepareIndexOperations(index)),
    reader: openReader(path),
    release: () => {},
  })
}

/** `db` stays open unused: a read-only connection can open the file only while a writable one has it open. */
async function openServerStore(db: DatabaseSync, path: string): Promise<Store> {
  const lock = acquireServerLock(path)
  const opened: { close(): unknown }[] = []
  const release = () => {
    if (db.isOpen) db.close()
    lock.release()
  }
  try {
    const facts = prepareFile(db, path)
    const problem = copyProblem(db)
    if (problem) throw new StoreRefused(problem)
    prepareIndexFile(path)
    const indexer = await StoreThread.start<IndexOperations>('indexer', path)
    opened.push(indexer)
    const writer = await StoreThread.start<Operations>('writer', path)
    opened.push(writer)
    await writer.run('forgetNodes', [])
    const store = composeStore({ path, facts, writer, indexer, reader: openReader(path), release })
    return watchingForDamage(store, () => indexer.run('checkIndex', []))
  } catch (error) {
    for (const one of opened) await one.close()
    release()
    throw error
  }
}

/** A starting server migrates within moments. A running server must not meet a changed schema. */
async function waitForServerMigration(db: DatabaseSync, path: string): Promise<void> {
  const deadline = Date.now() + SERVER_START_MS
  while (isServerRunning(path) && (needsMigration(db) || needsIndexFile(path))) {
    if (Date.now() > deadline) {
      throw new StoreRefused(
        'This version of Intray needs to change the schema, but a server is running on the database. Stop the server first.',
      )
    }
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

function prepareFile(db: DatabaseSync, path: string): Store['facts'] {
  return {
    driver: 'sqlite',
    path,
    sqlite_version: sqliteVersion(db),
    synchronous: readSynchronous(db) === 2 ? 'full' : 'unsafe',
    schema_version: migrate(db),
    database_uuid: Buffer.from(readMeta(db, 'database_uuid')).toString(),
  }
}

function composeStore({ path, facts, writer, indexer, reader, release }: Parts): Store {
  const dedupeKey = readMeta(reader, 'dedupe_key')
  const events = prepareEventReads(reader)
  const follow = prepareFollow(reader)
  const tokens = prepareTokenReads(reader)
  const processing = prepareProcessingReads(reader)
  const operators = prepareOperatorReads(reader)
  const traffic = prepareTrafficReads(reader)
  return {
    traits: { concurrentWriters: false, appendsInFlight: APPENDS_IN_FLIGHT },
    facts,
    journal: {
      append: (items) =>
        appendValid(items, async (valid) => {
          const batch = packBatch(valid)
          const written = await writer.run('append', [batch], [batch.payloads.buffer])
          return written.map(outcomeOf)
        }),
    },
    events: {
      watermark: () => guard(() => events.watermark()),
      find: (id, tenant) => guard(() => events.find(id, tenant)),
      payload: (id, tenant) => guard(() => events.payload(id, tenant)),
      revisions: (eventId, afterId, limit) => guard(() => events.revisions(eventId, afterId, limit)),
      indexEntry: (event) => guard(() => events.indexEntry(event)),
      repeats: (event) => guard(() => events.repeats(event)),
      conversation: (tenant, channelRef) => guard(() => events.conversation(tenant, channelRef)),
    },
    inbox: guardAll(createInboxReader(reader, dedupeKey)),
    follow: {
      after: (tenant, afterId, limit) => guard(() => follow.after(tenant, afterId, limit)),
      head: () => guard(() => follow.head()),
      tenantsBetween: (afterId, throughId) => guard(() => follow.tenantsBetween(afterId, throughId)),
    },
    index: {
      step: (limits) => indexer.run('indexStep', [limits]),
      stepWords: (limits) => indexer.run('indexWordsStep', [limits]),
      progress: () => guard(() => readProgress(reader)),
      requestRebuild: () => indexer.run('indexRebuild', []),
      pruneTraffic: (minutesBefore, hoursBefore) => indexer.run('pruneTraffic', [minutesBefore, hoursBefore]),
    },
    processing: {
      claim: async (request) => {
        const grants = await writer.run('claim', [request])
        return grants && guard(() => processing.claimed(grants, request))
      },
      ack: (request) => writer.run('ack', [request]),
      extend: (request) => writer.run('extend', [request]),
      release: (request) => writer.run('release', [request]),
      requeue: (request) => writer.run('requeue', [request]),
      countDead: (queue, filter) => guard(() => countDead(reader, queue, filter)),
      ready: (queues, now) => guard(() => queues.map((queue) => processing.ready(queue, now))),
      subscriptions: (tenant) => guard(() => readSubscriptions(reader, tenant)),
      createSubscription: (queue, from, at, max) => writer.run('createSubscription', [queue, from, at, max]),
      deleteSubscription: async (queue, at) => {
        const begin = await writer.run('deleteSubscription', [queue, at])
        let step: Clearing | null = begin
        while (step) step = await writer.run('clearSubscriptions', [queue.tenant, step, CLEAR_ROWS])
        return begin !== null
      },
      history: (tenant, eventId) => guard(() => processing.history(tenant, eventId)),
      counts: (queue, ids) => guard(() => processing.counts(queue, ids)),
      states: (queue, ids, now) => guard(() => processing.states(queue, ids, now)),
    },
    tokens: {
      create: (token) => writer.run('createToken', [token]),
      createFirst: (token) => writer.run('createFirstToken', [token]),
      find: (keyId) => guard(() => tokens.find(keyId)),
      list: () => guard(() => tokens.list()),
      listOf: (tenant, before, limit) => guard(() => tokens.listOf(tenant, before, limit)),
      tenants: (after, limit) => guard(() => tokens.tenants(after, limit)),
      hasTenant: (tenant) => guard(() => tokens.hasTenant(tenant)),
      successorOf: (keyId) => guard(() => tokens.successorOf(keyId)),
      setActive: (keyId, isActive, now) => writer.run('setTokenActive', [keyId, isActive, now]),
      setRateLimit: (keyId, rateLimit) => writer.run('setTokenRateLimit', [keyId, rateLimit]),
      rotate: (successor, oldExpiresAt, now) => writer.run('rotateToken', [successor, oldExpiresAt, now]),
      touch: (uses) => writer.run('touchTokens', [uses]),
      generation: () => guard(() => tokens.generation()),
      changedSince: (generation) => guard(() => tokens.changedSince(generation)),
    },
    refusals: {
      add: (refusals, bounds, now) => writer.run('addRefusals', [refusals, bounds, now]),
      list: (tenant, beforeId, limit) => guard(() => listRefusals(reader, tenant, beforeId, limit)),
      find: (tenant, id) => guard(() => findRefusal(reader, tenant, id)),
      accept: (tenant, id, as) => writer.run('acceptRefusal', [tenant, id, as]),
    },
    operators: {
      create: (operator) => writer.run('createOperator', [operator]),
      createFirst: (operator) => writer.run('createFirstOperator', [operator]),
      findByName: (name) => guard(() => operators.findByName(name)),
      list: () => guard(() => operators.list()),
      setPassword: (name, password) => writer.run('setOperatorPassword', [name, password]),
      setDisabled: (name, disabledAt) => writer.run('setOperatorDisabled', [name, disabledAt]),
      openSession: (session, maxSessions, password) => writer.run('openSession', [session, maxSessions, password]),
      findSession: (hash, now) => guard(() => operators.findSession(hash, now)),
      touchSession: (hash, seenAt) => writer.run('touchSession', [hash, seenAt]),
      closeSession: (hash) => writer.run('closeSession', [hash]),
      closeSessions: (operatorId) => writer.run('closeSessions', [operatorId]),
      addLink: (link) => writer.run('addSignInLink', [link]),
      // Checked by a read first, so that a guessed link costs no write.
      useLink: async (hash, now) =>
        (await guard(() => operators.hasLink(hash, now))) ? writer.run('useSignInLink', [hash, now]) : null,
      addAudit: (entry) => writer.run('addAudit', [entry]),
      listAudit: (beforeId, limit) => guard(() => operators.listAudit(beforeId, limit)),
      prune: (now, auditBefore) => writer.run('pruneOperators', [now, auditBefore]),
    },
    traffic: {
      minutes: (tenant, from) => guard(() => traffic.minutes(tenant, from)),
      hours: (tenant, from) => guard(() => traffic.hours(tenant, from)),
      queueDepth: (tenant, now) => guard(() => traffic.queueDepth(tenant, now)),
      refusalCounts: (tenant, since) => guard(() => traffic.refusalCounts(tenant, since)),
    },
    nodes: {
      report: (state) => writer.run('reportNode', [state]),
      remove: (nodeId) => writer.run('removeNode', [nodeId]),
      live: () => guard(() => (isServerRunning(path) ? readNodes(reader) : [])),
    },
    metrics: { read: (now) => guard(() => readMetrics(reader, now)) },
    diagnosis: guardAll(createDiagnosis(reader)),
    probe: () => writer.run('probe', []),
    onFatal: (listener) => {
      let isReported = false
      const once = (failure: Error) => {
        if (!isReported) listener(failure)
        isReported = true
      }
      for (const thread of [writer, indexer]) thread.onFatal(once)
    },
    close: async () => {
      if (reader.isOpen) reader.close()
      await indexer.close()
      await writer.close()
      release()
    },
  }
}

/** Runs a short synchronous read: callers get a promise, and failures as StoreFailure. */
async function guard<T>(read: () => T): Promise<T> {
  try {
    return read()
  } catch (error) {
    throw readFailure(error)
  }
}

/** The same for a capability whose calls are asynchronous. */
function guardAll<T extends object>(capability: T): T {
  const calls = Object.entries(capability as Record<string, (...args: readonly unknown[]) => Promise<unknown>>)
  return Object.fromEntries(
    calls.map(([name, call]) => [
      name,
      (...args: readonly unknown[]) =>
        call(...args).catch((error: unknown) => {
          throw readFailure(error)
        }),
    ]),
  ) as T
}

/** Runs operations in this process. */
function runInProcess<O extends Record<string, (...args: never[]) => unknown>>(
  db: DatabaseSync,
  operations: O,
): Executor<O> {
  return {
    run: (name, args) => guard(() => operations[name]!(...(args as never[]))) as never,
    onFatal: () => {},
    close: async () => {
      if (db.isOpen) db.close()
    },
  }
}
