// The SQLite store: composes its parts. A server writes the journal, writes the index and reads in one thread each;
// what is constant in time and needed for every request, it reads on the main thread. A command does all of it in its own
// process, beside a server or alone.

import type { DatabaseSync } from 'node:sqlite'
import { type Tenant, tenantText } from '../../model/principal.ts'
import { appendApart } from '../append-apart.ts'
import { payloadsInTurn } from '../calls-in-turn.ts'
import { claimAround } from '../claim-around.ts'
import { StoreRefused } from '../contract/failure.ts'
import type { Store, StoreOptions } from '../contract/store.ts'
import { appendValid } from '../validate-items.ts'
import { copyProblem } from './admin/copy.ts'
import { dropStaleNoting } from './admin/copy-triggers.ts'
import { erasureLogId } from '../../model/erasure.ts'
import { createEndpointStore } from './admin/endpoint-store.ts'
import { readPending } from './admin/erasures.ts'
import { createFollowPurges, createPurge } from './admin/purge.ts'
import { createDiagnosis } from './admin/diagnosis.ts'
import { readNodes } from './admin/nodes.ts'
import { prepareOperatorReads } from './admin/operators.ts'
import { createRecovery, readEpochs, readGaps } from './admin/recovery.ts'
import { createTokenStores } from './admin/token-stores.ts'
import {
  CHECKPOINT_PAGES,
  inTransaction,
  openConnection,
  readSynchronous,
  refusal,
  requireFile,
  sqliteCode,
  sqliteVersion,
} from './connection.ts'
import { watchingForDamage } from './damage.ts'
import { readCoverage } from './index/inbox.ts'
import { guard, guardAll, runInProcess } from './guarded-calls.ts'
import {
  attachIndex,
  needsIndexFile,
  openIndexWriter,
  openReader,
  prepareIndexFile,
  refuseLostJournal,
} from './index/index-file.ts'
import { readProgress } from './index/indexing.ts'
import { outcomeOf } from './journal/append.ts'
import { packBatch } from './journal/append-batch.ts'
import { prepareFollow } from './journal/follow.ts'
import { readSequence } from './journal/sequence.ts'
import { acquireServerLock, isServerRunning } from './lock.ts'
import {
  type Executor,
  type IndexOperations,
  type Operations,
  prepareIndexOperations,
  prepareOperations,
} from './operations.ts'
import type { Clearing } from './processing/subscriptions.ts'
import { prepareReads, type Reads } from './reads.ts'
import { migrate, needsMigration, readMeta } from './schema.ts'
import { StoreThread } from './threads/thread.ts'

/** The writer commits all waiting batches together: while it works, the next ones are on their way to it. */
const APPENDS_IN_FLIGHT = 8

/** Rows per step when deleting a subscription: each step delays the messages behind it. */
const CLEAR_ROWS = 500

/** Dead events that are requeued in one transaction. */
const REQUEUE_ROWS = 200

/**
 * How long a command waits for a starting server to migrate the schema. Counted in looks, not by the clock: while the machine stands
 * still, so does the server.
 */
const SERVER_START_MS = 3000
const LOOK_EVERY_MS = 25

/** The connections of a store. */
interface Parts {
  readonly path: string
  readonly facts: Store['facts']
  readonly writer: Executor<Operations>
  readonly indexer: Executor<IndexOperations>
  readonly reader: Executor<Reads>
  /** For reads of a few rows that a request cannot do without: tokens, sessions, positions. */
  readonly main: DatabaseSync
  /** Called after all of them are closed. */
  readonly release: () => void
}

export async function openSqliteStore(path: string, options: StoreOptions): Promise<Store> {
  refuseLostJournal(path)
  if (options.mustExist) requireFile(path)
  const db = openConnection(path, 'tool')
  try {
    const store = options.role === 'tool' ? await openToolStore(db, path) : await openServerStore(db, path)
    return { ...store, journal: { append: appendApart(store.journal.append) } }
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
  const main = openReader(path)
  return composeStore({
    path,
    facts,
    writer: runInProcess(db, prepareOperations(db)),
    indexer: runInProcess(index, prepareIndexOperations(index)),
    reader: runInProcess(
      main,
      prepareReads(main)(async () => {}),
    ),
    main,
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
    inTransaction(db, () => dropStaleNoting(db, Date.now()))
    prepareIndexFile(path)
    const indexer = await StoreThread.start<IndexOperations>('indexer', path)
    opened.push(indexer)
    const writer = await StoreThread.start<Operations>('writer', path)
    opened.push(writer)
    await writer.run('forgetNodes', [])
    const reader = await StoreThread.start<Reads>('reader', path)
    opened.push(reader)
    const store = composeStore({ path, facts, writer, indexer, reader, main: openReader(path), release })
    return watchingForDamage(store, () => indexer.run('repairIndex', []))
  } catch (error) {
    for (const one of opened.toReversed()) await one.close()
    release()
    throw error
  }
}

/** A starting server migrates within moments. A running server must not meet a changed schema. */
async function waitForServerMigration(db: DatabaseSync, path: string): Promise<void> {
  for (let waitedMs = 0; isServerRunning(path) && (needsMigration(db) || needsIndexFile(path)); ) {
    if (waitedMs >= SERVER_START_MS) {
      throw new StoreRefused(
        'This version of Intray needs to change the schema, but a server is running on the database. Stop the server first.',
      )
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
    waitedMs += LOOK_EVERY_MS
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

function composeStore({ path, facts, writer, indexer, reader, main, release }: Parts): Store {
  const operators = prepareOperatorReads(main)
  const position = prepareFollow(main)
  const [gaps, epochs] = [readGaps(main), readEpochs(main)]
  const purge = createPurge({ main, writer, indexer })
  /** A read in the turn of a tenant. */
  const read = <N extends keyof Reads>(
    { companyId, accountId }: Tenant,
    name: N,
    args: Parameters<Reads[N]>,
    gone?: AbortSignal,
  ) => reader.run(name, args, { holder: tenantText({ companyId, accountId }), gone })
  /** A change in the turn of a tenant. */
  const write = <N extends keyof Operations>(
    { companyId, accountId }: Tenant,
    name: N,
    args: Parameters<Operations[N]>,
  ) => writer.run(name, args, { holder: tenantText({ companyId, accountId }) })
  /** A read of the node itself or of an operator. */
  const readOwn = <N extends keyof Reads>(name: N, args: Parameters<Reads[N]>) => reader.run(name, args)
  const readFor = <N extends keyof Reads>(tenant: Tenant | undefined, name: N, args: Parameters<Reads[N]>) =>
    tenant ? read(tenant, name, args) : readOwn(name, args)
  return {
    traits: { concurrentWriters: false, appendsInFlight: APPENDS_IN_FLIGHT },
    facts,
    journal: {
      append: (items) =>
        appendValid(items, async (valid) => {
          const batch = packBatch(valid)
          const written = await writer.run('append', [batch], { transfer: [batch.payloads.buffer] })
          return written.map(outcomeOf)
        }),
    },
    events: payloadsInTurn({
      watermark: () => guard(() => readSequence(main, 'events')),
      find: (id, tenant) => readFor(tenant, 'findEvent', [id, tenant]),
      payload: (id, tenant) => readFor(tenant, 'payload', [id, tenant]),
      payloadFields: (id, tenant) => read(tenant, 'payloadFields', [id, tenant]),
      revisions: (eventId, afterId, limit) => readOwn('revisionsOf', [eventId, afterId, limit]),
      indexEntry: (event) => read(event, 'indexEntry', [event]),
      repeats: (event) => read(event, 'repeats', [event]),
      conversation: (tenant, channelRef) => read(tenant, 'conversationOf', [tenant, channelRef]),
    }),
    inbox: {
      coverage: () => guard(() => readCoverage(main, gaps)),
      events: (tenant, filter, after, limit, gone) => read(tenant, 'listEvents', [tenant, filter, after, limit], gone),
      revisions: (tenant, ...args) => read(tenant, 'listRevisions', [tenant, ...args]),
      conversations: (tenant, ...args) => read(tenant, 'listConversations', [tenant, ...args]),
      conversation: (tenant, id) => read(tenant, 'conversation', [tenant, id]),
      conversationEvents: (tenant, ...args) => read(tenant, 'conversationEvents', [tenant, ...args]),
    },
    lists: {
      events: (tenant, filter, after, limit, now, gone) =>
        read(tenant, 'pageOfEvents', [tenant, filter, after, limit, now], gone),
      revisions: (tenant, ...args) => read(tenant, 'pageOfRevisions', [tenant, ...args]),
      conversations: (tenant, ...args) => read(tenant, 'pageOfConversations', [tenant, ...args]),
      conversationEvents: (tenant, ...args) => read(tenant, 'pageOfConversationEvents', [tenant, ...args]),
      refusals: (tenant, ...args) => read(tenant, 'pageOfRefusals', [tenant, ...args]),
    },
    follow: {
      after: (tenant, afterId, limit) => read(tenant, 'followedAfter', [tenant, afterId, limit]),
      head: () => guard(() => position.head()),
      tenantsBetween: (afterId, throughId) => readOwn('tenantsBetween', [afterId, throughId]),
    },
    index: {
      step: (limits) => indexer.run('indexStep', [limits]),
      stepWords: (limits) => indexer.run('indexWordsStep', [limits]),
      progress: () => guard(() => readProgress(main, gaps)),
      requestRebuild: () => indexer.run('indexRebuild', []),
      pruneTraffic: (minutesBefore, hoursBefore) => indexer.run('pruneTraffic', [minutesBefore, hoursBefore]),
    },
    processing: {
      claim: (request) =>
        claimAround(request, {
          grant: () => write(request.tenant, 'claim', [request]),
          read: (grants) => read(request.tenant, 'claimed', [grants, request]),
          release: (parked) => write(request.tenant, 'release', [parked]),
        }),
      ack: (request) => write(request.tenant, 'ack', [request]),
      extend: (request) => write(request.tenant, 'extend', [request]),
      release: (request) => write(request.tenant, 'release', [request]),
      // Found by a read, since there may be any number of dead events to look at.
      requeue: async (request) => {
        const { tenant, subscription, filter, limit } = request
        const ids = filter.ids ?? (await read(tenant, 'findDead', [{ tenant, subscription }, filter, limit]))
        if (ids === null) return null
        let count = 0
        for (let from = 0; from < ids.length; from += REQUEUE_ROWS) {
          const some = { ...filter, ids: ids.slice(from, from + REQUEUE_ROWS) }
          const requeued = await write(tenant, 'requeue', [{ ...request, filter: some }])
          if (requeued === null) return null
          count += requeued
        }
        return count
      },
      countSettled: (queue, range) => read(queue.tenant, 'countSettled', [queue, range]),
      replay: async ({ range, limit, ...request }) => {
        const ids = await read(request.tenant, 'findSettled', [request, range, Math.min(limit, REQUEUE_ROWS)])
        const count = ids && (await write(request.tenant, 'replay', [{ ...request, ids }]))
        return count === null ? null : { count, lastId: ids?.at(-1) ?? null }
      },
      countDead: (queue, filter) => read(queue.tenant, 'countDead', [queue, filter]),
      ready: (queues, now) => readOwn('ready', [queues, now]),
      subscriptions: (tenant) => read(tenant, 'subscriptions', [tenant]),
      createSubscription: (queue, from, at, options) =>
        write(queue.tenant, 'createSubscription', [queue, from, at, options]),
      deleteSubscription: async (queue, at) => {
        const begin = await write(queue.tenant, 'deleteSubscription', [queue, at])
        let step: Clearing | null = begin
        while (step) step = await write(queue.tenant, 'clearSubscriptions', [queue.tenant, step, CLEAR_ROWS])
        return begin !== null
      },
      history: (tenant, eventId) => read(tenant, 'history', [tenant, eventId]),
      counts: (queue, ids) => read(queue.tenant, 'counts', [queue, ids]),
      states: (queue, ids, now) => read(queue.tenant, 'states', [queue, ids, now]),
      lastErrors: (queue, ids) => read(queue.tenant, 'lastErrors', [queue, ids]),
    },
    endpoints: createEndpointStore(main, writer),
    ...createTokenStores({ main, writer, read, readOwn }),
    refusals: {
      add: (refusals, bounds) => writer.run('addRefusals', [refusals, bounds]),
      list: (tenant, beforeId, limit) => read(tenant, 'listRefusals', [tenant, beforeId, limit]),
      find: (tenant, id) => read(tenant, 'findRefusal', [tenant, id]),
      accept: (tenant, id, as) => writer.run('acceptRefusal', [tenant, id, as]),
    },
    erasures: {
      erase: (tenant, ids, at) => write(tenant, 'erase', [tenant, ids, at]),
      deleteRefusals: (tenant, ids) => write(tenant, 'deleteRefusals', [tenant, ids]),
      findMinted: (tenant, keys) => read(tenant, 'findMinted', [tenant, keys]),
      purge,
      isPending: (tenant) => guard(() => readPending(main, tenant)),
      logId: () => guard(() => erasureLogId(String(facts.database_uuid), readMeta(main, 'dedupe_key'), epochs)),
      log: (afterId, limit) => readOwn('erasureLog', [afterId, limit]),
      unerased: (records) => readOwn('unerased', [records]),
    },
    retention: {
      rules: () => readOwn('retentionRules', []),
      setRule: (rule) => writer.run('setRetentionRule', [rule]),
      tenants: (kind, after, limit) => readOwn('retentionTenants', [kind, after, limit]),
      purgeStep: (request) => writer.run('purgeStep', [request]),
      deleteOld: (kind, tenant, before, limit) => writer.run('deleteOld', [kind, tenant, before, limit]),
      countOld: (kind, tenant, before, limit) => read(tenant, 'countOld', [kind, tenant, before, limit]),
      followPurges: createFollowPurges({ main, writer, indexer }),
    },
    operators: {
      create: (operator) => writer.run('createOperator', [operator]),
      createFirst: (operator) => writer.run('createFirstOperator', [operator]),
      findByName: (name) => guard(() => operators.findByName(name)),
      list: () => readOwn('listOperators', []),
      setPassword: (name, password) => writer.run('setOperatorPassword', [name, password]),
      setDisabled: (name, disabledAt) => writer.run('setOperatorDisabled', [name, disabledAt]),
      setRole: (name, role, evenLastAdmin) => writer.run('setOperatorRole', [name, role, evenLastAdmin]),
      remove: (name, evenLastAdmin) => writer.run('removeOperator', [name, evenLastAdmin]),
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
      listAudit: (beforeId, limit) => readOwn('listAudit', [beforeId, limit]),
      prune: (now, auditBefore) => writer.run('pruneOperators', [now, auditBefore]),
    },
    traffic: {
      minutes: (tenant, from) => read(tenant, 'trafficMinutes', [tenant, from]),
      hours: (tenant, from) => read(tenant, 'trafficHours', [tenant, from]),
      queueDepth: (tenant, now) => read(tenant, 'queueDepth', [tenant, now]),
      refusalCounts: (tenant, since) => read(tenant, 'refusalCounts', [tenant, since]),
    },
    nodes: {
      report: (state) => writer.run('reportNode', [state]),
      remove: (nodeId) => writer.run('removeNode', [nodeId]),
      live: () => guard(() => (isServerRunning(path) ? readNodes(main) : [])),
    },
    metrics: { read: (now) => readOwn('metrics', [now]) },
    transfer: {
      rows: (query) => readOwn('exportedRows', [query]),
      payloads: (ids) => readOwn('exportedPayloads', [ids]),
      held: (items) => readOwn('heldItems', [items]),
    },
    recovery: guardAll(createRecovery(main, gaps, (now) => writer.run('beginEpoch', [now]))),
    diagnosis: guardAll(createDiagnosis(main, path)),
    probe: () => writer.run('probe', []),
    onDamage: () => {},
    onFatal: (listener) => {
      let isReported = false
      const once = (failure: Error) => {
        if (!isReported) listener(failure)
        isReported = true
      }
      for (const thread of [writer, indexer, reader]) thread.onFatal(once)
    },
    close: async () => {
      if (main.isOpen) main.close()
      await reader.close()
      await indexer.close()
      await writer.close()
      release()
    },
  }
}
