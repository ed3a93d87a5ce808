// The composition root: config → store → services → http. What keeps messages starts before what takes them in, and stops
// after it: nothing is taken in that could not be kept.

import { Principals } from './auth/principals.ts'
import type { Config } from './config.ts'
import { createProcessingOperations } from './http/inbox/processing.ts'
import { createIntakeLane } from './http/intake-lane.ts'
import { ROUTES } from './http/routes.ts'
import { HttpServer } from './http/server.ts'
import { Indexer } from './indexing/indexer.ts'
import { createAccept } from './intake/accept.ts'
import { Batcher } from './intake/batcher.ts'
import { RefusalRecorder } from './intake/refusals.ts'
import { StoreHealth } from './maintenance/store-health.ts'
import type { Problem } from './model/errors.ts'
import { Claims } from './processing/claims.ts'
import { type Clock, systemClock } from './runtime/clock.ts'
import { newUuid } from './runtime/id.ts'
import { errorText, type Logger } from './runtime/log.ts'
import { redactText } from './runtime/redact.ts'
import type { Store } from './store/contract/store.ts'

/** Bytes of journal that one step of the indexer reads at most. */
const INDEX_BATCH_BYTES = 8 * 1024 * 1024

/** Under load a turn of the event loop reads many sockets: the store starts on the first messages while we read on. */
const EAGER_EVENTS = 8

export interface AppOptions {
  readonly config: Config
  readonly store: Store
  readonly logger: Logger
  readonly clock?: Clock
}

export interface App {
  /** Where it listens, as a URL. */
  readonly address: string
  /** Not ready from now on; finishes what is in flight, commits, closes the store. Calling it again is fine. */
  stop(): Promise<void>
}

export async function startApp({ config, store, logger, clock = systemClock }: AppOptions): Promise<App> {
  const onTrouble = (doing: string, error: unknown) => logger.warn(`could not ${doing}`, { error: errorText(error) })
  let stopping = false

  const health = new StoreHealth({ probe: () => store.probe(), logger })
  const claims = new Claims({ store: store.processing, clock, maxAttempts: config.maxAttempts, onTrouble })
  const indexer = new Indexer({
    index: store.index,
    limits: { maxRows: config.indexBatchRows, maxBytes: INDEX_BATCH_BYTES },
    onStep: ({ indexed, unindexed, cursor }) => {
      if (indexed > 0) claims.hint()
      if (unindexed > 0) logger.warn('events could not be indexed; they are kept and marked', { unindexed, cursor })
    },
    onTrouble,
  })
  const batcher = new Batcher({
    journal: store.journal,
    limits: config,
    maxInFlight: store.traits.appendsInFlight,
    eagerEvents: EAGER_EVENTS,
    onCommitted: () => indexer.wake(),
    onOutcome: (failure) => health.note(failure),
    onItemFailed: ({ requestId }, reason) =>
      logger.error('a message could not be stored', { request_id: requestId, reason: redactText(reason) }),
  })
  const refusals = new RefusalRecorder({
    store: store.refusals,
    bounds: { maxCount: config.refusalsMaxCount, maxAgeMs: config.refusalsMaxAge },
    bufferMax: config.refusalsBuffer,
    clock,
    onTrouble,
  })
  const principals = new Principals({
    tokens: store.tokens,
    nodes: store.nodes,
    nodeId: newUuid(),
    clock,
    onTrouble: (doing, error) => {
      onTrouble(doing, error)
      // A node that nobody sends to has no commit that could fail: following the tokens tells it that its store is gone.
      health.note(error)
    },
  })
  const gate = { principals, intakeScopes: config.intakeScopes }
  const server = new HttpServer({
    ...config,
    routes: ROUTES.filter((route) => route.operation !== 'tester' || config.legacyTester === 'on'),
    gate,
    intakeLane: createIntakeLane({
      gate,
      accept: createAccept({ clock, submit: (item) => batcher.submit(item) }),
      recordRefusal: (refusal) => refusals.record(refusal),
      clock,
      maxBodyBytes: config.maxBodyBytes,
      remoteAddr: config.remoteAddr,
    }),
    processing: createProcessingOperations(claims, store.events),
    readiness: (): Problem | null => (stopping ? { code: 'shutting_down' } : health.problem),
    logger,
  })

  // Claims stop first: who waits for events is answered, so that the server has nothing to wait for.
  const services = [health, indexer, batcher, refusals, principals, server, claims]
  const stopServices = async () => {
    for (const service of services.toReversed()) await service.stop()
  }
  try {
    for (const service of services) await service.start()
  } catch (error) {
    await stopServices()
    throw error
  }
  logger.info('listening', { address: server.address, ...store.facts })

  let stopped: Promise<void> | null = null
  const stop = async () => {
    stopping = true
    logger.info('stopping', { ready_delay_ms: config.readyDelay })
    if (config.readyDelay > 0) await new Promise((resolve) => setTimeout(resolve, config.readyDelay))
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
