// The composition root: config → store → services → http. Storage starts before the HTTP server and stops after it, so that
// every accepted message can be stored.

import { createAudit } from './auth/audit.ts'
import { FailedTokenLimiter } from './auth/failed-token-limiter.ts'
import { Principals } from './auth/principals.ts'
import { isSessionKey, Sessions } from './auth/sessions.ts'
import { SignInBackOff } from './auth/sign-in-back-off.ts'
import { HookAccesses } from './auth/hook-access.ts'
import { TenantHooks } from './auth/tenant-hooks.ts'
import { TenantTokens } from './auth/tenant-tokens.ts'
import { AUTO_READY_DELAY_MS, type Config, tlsFiles } from './config.ts'
import { createEndpointOperations } from './http/inbox/endpoints.ts'
import { createStreamHandler, HEARTBEAT, renderEvent } from './http/inbox/stream.ts'
import { createProcessingOperations } from './http/inbox/processing.ts'
import { createHookHandler } from './http/hook-handler.ts'
import { createIntakeHandler } from './http/intake-handler.ts'
import { MetricsListener } from './http/metrics-listener.ts'
import { ReadyDelay } from './http/ready-delay.ts'
import { ByteRates } from './http/byte-rates.ts'
import { createPublicAddress } from './http/wire/public-address.ts'
import { BodyMemory } from './http/wire/body-memory.ts'
import { isConsoleRoute, pathsOf, ROUTES } from './http/routes.ts'
import { HttpServer } from './http/server.ts'
import { LoadShedder } from './http/load-shedder.ts'
import { Erasures } from './erasure/erasures.ts'
import { ErasureLogCopy } from './erasure/log-copy.ts'
import { createAwaitIndex } from './indexing/await-index.ts'
import { Indexer } from './indexing/indexer.ts'
import { createAccept } from './intake/accept.ts'
import { createAcceptRefusal } from './intake/accept-refusal.ts'
import { Batcher } from './intake/batcher.ts'
import { createPromote } from './intake/promote.ts'
import { RefusalRecorder } from './intake/refusals.ts'
import { ErasurePurge } from './maintenance/erasure-purge.ts'
import { Retention } from './maintenance/retention.ts'
import { Pruning } from './maintenance/pruning.ts'
import { StoreHealth } from './maintenance/store-health.ts'
import { createStoreMetrics } from './maintenance/store-metrics.ts'
import { ERRORS, type Problem } from './model/errors.ts'
import { RETENTION_SERVICE } from './model/operator.ts'
import type { Tenant } from './model/principal.ts'
import type { Refusal } from './model/refusal.ts'
import { StreamHub } from './processing/stream-hub.ts'
import { Claims } from './processing/claims.ts'
import { createPushing } from './processing/push/pushing.ts'
import { type Clock, systemClock } from './runtime/clock.ts'
import { newUuid } from './runtime/id.ts'
import { errorText, type Logger } from './runtime/log.ts'
import { OtlpExport } from './runtime/otlp-export.ts'
import { redactText } from './runtime/redact.ts'
import { Secrets } from './runtime/secrets.ts'
import { ServiceMetrics } from './runtime/service-metrics.ts'
import { registeredTracing, Tracing } from './runtime/tracing.ts'
import { VERSION } from './runtime/version.ts'
import type { Store } from './store/contract/store.ts'
import { secretsKeyFile } from './store/open.ts'

/** Most bytes of journal that one step of the indexer reads. */
const INDEX_BATCH_BYTES = 8 * 1024 * 1024
/** A step for words is short, since messages that come in meanwhile wait for it before they can be claimed. */
const WORD_BATCH = { maxRows: 200, maxBytes: 64 * 1024 } as const

/** Under load a turn of the event loop reads many sockets: this many messages are appended before the turn ends. */
const EAGER_EVENTS = 32

/** Where other nodes index too, streams poll the index this often. */
const STREAM_POLL_MS = 250

const UNTRUSTED =
  'The storage can no longer be trusted, so this server ends; the log says why. Its next start (./intray serve) rebuilds the ' +
  'index if that is what is damaged.'

export interface AppOptions {
  readonly config: Config
  readonly store: Store
  readonly logger: Logger
  readonly clock?: Clock
  /** A listening socket that outlives this process, in place of host and port: what connects between two processes waits in it. */
  readonly listenFd?: number | null
}

export interface App {
  /** The URL it listens on. */
  readonly address: string
  /** Reports not ready, finishes requests in flight, commits, closes the store. Calling it again is fine. */
  stop(): Promise<void>
}

export async function startApp(options: AppOptions): Promise<App> {
  const { config, store, logger, clock = systemClock, listenFd = null } = options
  const onTrouble = (doing: string, error: unknown) => logger.warn(`could not ${doing}`, { error: errorText(error) })
  const warnUnindexed = (unindexed: number, cursor: number) => {
    if (unindexed > 0) logger.warn('events could not be indexed; they are kept and marked', { unindexed, cursor })
  }
  const { otlpEndpoint: endpoint, traceRequests: share } = config
  const traces = endpoint === null ? null : await OtlpExport.create({ endpoint, share, version: VERSION, logger })
  const tracing = traces === null ? registeredTracing() : new Tracing(traces.provider)
  let stopping = false
  let lost: Problem | null = null
  store.onFatal(() => {
    lost = { code: 'storage_unavailable', message: UNTRUSTED }
  })
  store.onDamage((finding) => logger.error('a damaged page was met', { finding }))

  const health = new StoreHealth({ probe: () => store.probe(), logger })
  const { maxAttempts, maxSubscriptions } = config
  const claims = new Claims({ store: store.processing, clock, maxAttempts, maxSubscriptions, onTrouble })
  const indexer = new Indexer({
    index: store.index,
    limits: { maxRows: config.indexBatchRows, maxBytes: INDEX_BATCH_BYTES, extractBytes: config.extractBytes },
    wordLimits: { ...WORD_BATCH, maxWords: config.searchWords, extractBytes: config.extractBytes },
    onStep: (step, startedAt) => {
      const { indexed, unindexed, unreadable, cursor } = step
      tracing?.indexed(startedAt, step)
      streams.wake(cursor)
      if (indexed > 0) claims.hint()
      warnUnindexed(unindexed, cursor)
      if (unreadable > 0) logger.error('ids were passed over: damaged pages hide their rows', { unreadable, cursor })
    },
    onWords: ({ unindexed, searchable }) => warnUnindexed(unindexed, searchable),
    onTrouble,
    waiting: () => batcher.waiting.events,
  })
  const batcher = new Batcher({
    journal: store.journal,
    limits: config,
    maxInFlight: store.traits.appendsInFlight,
    eagerEvents: EAGER_EVENTS,
    onCommitted: () => indexer.wake(),
    onOutcome: (failure, items, startedAt) => {
      health.note(failure)
      metrics.appended(items.length, (performance.now() - startedAt) / 1000, failure)
      tracing?.committed(items, startedAt, failure)
    },
    onItemFailed: ({ requestId }, reason) =>
      logger.error('a message could not be stored', { request_id: requestId, reason: redactText(reason) }),
  })
  const refusals = new RefusalRecorder({
    store: store.refusals,
    bounds: { maxCount: config.refusalsMaxCount },
    bufferMax: config.refusalsBuffer,
    onTrouble,
  })
  const principals = new Principals({
    tokens: store.tokens,
    nodes: store.nodes,
    nodeId: newUuid(),
    clock,
    rateLimit: config.rateLimit,
    onTrouble: (doing, error) => {
      onTrouble(doing, error)
      // A node without traffic notices a lost store here, because it commits nothing.
      health.note(error)
    },
  })
  const metrics: ServiceMetrics = new ServiceMetrics({
    version: VERSION,
    driver: String(store.facts.driver),
    routes: pathsOf(ROUTES),
    sheddableRoutes: pathsOf(
      ROUTES.filter(({ scope, operation }) => operation === 'hook' || ['intake', 'processor', 'admin'].includes(scope)),
    ),
    errors: Object.keys(ERRORS),
    store: createStoreMetrics(store, clock),
    inbox: () => ({ ...loadShedder.inProgress, streams: streams.size }),
    receivingBytes: () => bodyMemory.bytes,
    droppedRefusals: () => refusals.dropped,
    queue: () => {
      const { events, bytes, oldestReceivedAt } = batcher.waiting
      const oldestSeconds = oldestReceivedAt === null ? 0 : Math.max(0, clock.now() - oldestReceivedAt) / 1000
      return { events, bytes, oldestSeconds }
    },
    retention: () => ({
      held: retention.held,
      overdueSeconds: retention.overdueMs / 1000,
      lastRunSeconds: retention.lastAt === null ? null : Math.max(0, clock.now() - retention.lastAt) / 1000,
    }),
    push: () => push.counts,
    certificateExpiresAt: () => server.certificateExpiresAt,
    isReady: () => readiness() === null,
  })
  const readiness = (): Problem | null =>
    stopping && !staysReady ? { code: 'shutting_down' } : (lost ?? health.problem)
  // A health check that finds a stopping server on its socket's last connection is not sent elsewhere.
  const staysReady = listenFd !== null && config.readyDelay === 'auto'
  const readyDelay = new ReadyDelay({
    trustedProxies: config.trustedProxies,
    readyDelay: staysReady ? 0 : config.readyDelay,
    autoMaxMs: AUTO_READY_DELAY_MS,
    now: () => performance.now(),
  })
  const streams = new StreamHub({
    follower: store.follow,
    render: renderEvent,
    maxStreams: config.maxStreams,
    tenantShare: config.tenantShare,
    heartbeat: HEARTBEAT,
    heartbeatMs: config.streamHeartbeat,
    drainTimeoutMs: config.streamDrainTimeout,
    pollEveryMs: store.traits.concurrentWriters ? STREAM_POLL_MS : null,
    revocation: (key) => (isSessionKey(key) ? sessions.revocation(key) : principals.revocation(key)),
    onTrouble,
  })
  principals.onChange(() => streams.recheck())
  const audit = createAudit({ store: store.operators, clock, onTrouble })
  const sessions = new Sessions({
    store: store.operators,
    clock,
    maxAgeMs: config.sessionMaxAge,
    idleMs: config.sessionIdle,
    backOff: new SignInBackOff({ clock, free: config.signInFailures }),
    audit,
    onTrouble,
  })
  const pruning = new Pruning({ store, clock, auditMaxAgeMs: config.auditMaxAge, onTrouble })
  const retention = new Retention({
    store: store.retention,
    clock,
    everyMs: config.retentionEvery,
    refusalsMaxAgeMs: config.refusalsMaxAge,
    onTenant: (tenant, { events, refusals: refused, history }, held) =>
      audit({
        action: 'retention_delete',
        operator: { id: '', name: RETENTION_SERVICE },
        tenant,
        target: `events ${events}, refusals ${refused}, history ${history}, held back ${held}`,
        origin: { requestId: null, address: null },
      }),
    onDeleted: (kind, rows) => metrics.deleted(kind, rows),
    onTrouble,
  })
  const secrets = new Secrets({ key: config.secretsKey, file: secretsKeyFile(config.databaseUrl) })
  const { push, endpoints, hasSealed } = createPushing({
    ...config,
    store,
    claims,
    secrets,
    clock,
    logger,
    tracing,
    audit,
    waiting: () => batcher.waiting.events,
    onAttempt: (attempt) => metrics.pushed(attempt),
    onTrouble,
  })
  const erasurePurge = new ErasurePurge({ erasures: store.erasures, onTrouble })
  const erasureLogCopy = new ErasureLogCopy({ erasures: store.erasures, folder: config.erasureLogTo, onTrouble })
  const hasConsole = config.console === 'on'
  const operators = {
    find: (cookie: string) => sessions.find(cookie),
    hasTenant: (tenant: Tenant) => store.tokens.hasTenant(tenant),
  }
  const accept = createAccept({ clock, submit: (item) => batcher.submit(item) })
  const failedTokens = new FailedTokenLimiter({ limit: config.failedTokenLimit, clock })
  const auth = {
    principals,
    intakeScopes: config.intakeScopes,
    failedTokens,
    clock,
    operators: hasConsole ? operators : null,
  }
  const resumePointOf = (tenant: Tenant, cursor: number) => store.recovery.resumePointOf(tenant, cursor)
  const bodyMemory = new BodyMemory(config.receivingMaxBytes)
  const intake = {
    auth,
    accept,
    recordRefusal: (tenant: string, make: () => Promise<Refusal>) => refusals.record(tenant, make),
    byteRates: new ByteRates(config.tenantBytesPerSecond, clock),
    clock,
    bodyMemory,
    maxBodyBytes: config.maxBodyBytes,
    remoteAddr: config.remoteAddr,
  }
  const publicAddress = createPublicAddress(config.trustedProxies)
  const loadShedder = new LoadShedder({ ...config, isUnderPressure: () => batcher.isUnderPressure })
  const server = new HttpServer({
    ...config,
    listenFd,
    tls: tlsFiles(config),
    routes: ROUTES.filter((route) => route.operation !== 'tester' || config.legacyTester === 'on').filter(
      (route) => hasConsole || !isConsoleRoute(route),
    ),
    auth,
    loadShedder,
    intakeHandler: createIntakeHandler(intake),
    hookHandler: createHookHandler({
      ...intake,
      hooks: new HookAccesses({ hooks: store.hooks, secrets, clock, onTrouble }),
      publicUrl: config.publicUrl,
      publicAddress,
    }),
    readiness: (address) => {
      readyDelay.asked(address)
      return readiness()
    },
    inbox: {
      inbox: store.inbox,
      events: store.events,
      lists: store.lists,
      claims,
      clock,
      awaitIndex: createAwaitIndex({
        inbox: store.inbox,
        hurry: (needed) => indexer.hurry(needed),
        stepped: (timeoutMs) => indexer.stepped(timeoutMs),
      }),
      resumePointOf,
      promote: createPromote({
        events: store.events,
        erasures: store.erasures,
        clock,
        submit: (item) => batcher.submit(item),
      }),
      erasures: new Erasures({ store, clock }),
      refusalsSettled: () => refusals.settled(),
      onErased: () => {
        void erasurePurge.run()
        void erasureLogCopy.run()
      },
    },
    streamHandler: createStreamHandler({ auth, hub: streams, loadShedder, resumePointOf, onTrouble }),
    processing: {
      ...createProcessingOperations(claims, store.events, tracing),
      ...createEndpointOperations(endpoints, clock),
    },
    console: {
      sessions,
      audit,
      clock,
      remoteAddr: config.remoteAddr,
      maxBodyBytes: config.maxBodyBytes,
      tokens: new TenantTokens({ tokens: store.tokens, nodes: store.nodes, clock }),
      hooks: new TenantHooks({ ...store, secrets, hasSealed, clock }),
      publicUrl: config.publicUrl,
      publicAddress,
      traffic: store.traffic,
      indexLag: async () => (await store.index.progress()).lag,
      findRefusal: (tenant, id) => store.refusals.find(tenant, id),
      acceptRefusal: createAcceptRefusal({ accept, events: store.events, refusals: store.refusals, clock }),
      accept,
      listAudit: (beforeId, limit) => store.operators.listAudit(beforeId, limit),
    },
    logger,
    tracing,
    onAnswered: (answered) => metrics.answered(answered),
  })
  const metricsListener = new MetricsListener({ listen: config.metrics, render: () => metrics.render() })

  // Stopped in reverse order: streams and claims first, which answers all waiting requests.
  const services = [
    ...(traces ? [traces] : []),
    health,
    indexer,
    batcher,
    refusals,
    pruning,
    retention,
    erasurePurge,
    erasureLogCopy,
    principals,
    // Measuring the event loop wakes the process 50 times a second, so only if metrics are served.
    ...(config.metrics ? [metrics] : []),
    metricsListener,
    push,
    server,
    claims,
    streams,
  ]
  const stopServices = async () => {
    // The port closes first: a stream or claim that ends here begins again on another node. Pushes have the same time to end.
    void Promise.all([server.stop(), push.stop()])
    for (const service of services.toReversed()) await service.stop()
  }
  try {
    for (const service of services) await service.start()
  } catch (error) {
    await stopServices()
    throw error
  }
  const metricsAddress = metricsListener.address ?? undefined
  logger.info('listening', { address: server.address, metrics: metricsAddress, ...store.facts })

  let stopped: Promise<void> | null = null
  const stop = async () => {
    stopping = true
    logger.info('stopping')
    await readyDelay.pass()
    await stopServices()
    await store.close()
    logger.info('stopped')
  }
  return {
    address: server.address,
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}
