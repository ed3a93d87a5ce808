// All write operations by name: the interface between the store and its writing connections, which are in the server's
// threads or in a command's own process.

import type { DatabaseSync } from 'node:sqlite'
import type { IdGap } from '../../model/id-gaps.ts'
import { StoreFailure } from '../contract/failure.ts'
import { FROZEN } from '../copy-state.ts'
import { isFrozen } from './admin/copy-triggers.ts'
import { prepareEndpointWrites } from './admin/endpoints.ts'
import { prepareErasureWrites } from './admin/erasures.ts'
import { prepareHookWrites } from './admin/hooks.ts'
import { prepareNodeWrites } from './admin/nodes.ts'
import { prepareOperatorWrites } from './admin/operators.ts'
import { addGap } from './admin/recovery.ts'
import { prepareRefusalWrites } from './admin/refusals.ts'
import { prepareRetentionWrites } from './admin/retention.ts'
import { prepareTokenWrites } from './admin/tokens.ts'
import { inTransaction, truncateWal } from './connection.ts'
import { prepareIndexErasures } from './index/index-erasures.ts'
import { prepareIndexPurges } from './index/index-purges.ts'
import { repairIndex } from './index/index-file.ts'
import { prepareIndexing } from './index/indexing.ts'
import { pruneTraffic } from './index/traffic.ts'
import { prepareAppend, type Written } from './journal/append.ts'
import type { AppendBatch } from './journal/append-batch.ts'
import { prepareProcessing } from './processing/processing.ts'
import { prepareSubscriptionWrites } from './processing/subscriptions.ts'

export function prepareOperations(db: DatabaseSync) {
  const tokens = prepareTokenWrites(db)
  const hooks = prepareHookWrites(db)
  const nodes = prepareNodeWrites(db)
  const refusals = prepareRefusalWrites(db)
  const erasures = prepareErasureWrites(db)
  const retention = prepareRetentionWrites(db)
  const processing = prepareProcessing(db)
  const subscriptions = prepareSubscriptionWrites(db)
  const endpoints = prepareEndpointWrites(db)
  const operators = prepareOperatorWrites(db)
  const appendAll = prepareAppend(db)
  return {
    append: (batch: AppendBatch): Written[] => appendAll([batch])[0] ?? [],
    appendAll,
    createToken: tokens.create,
    createFirstToken: tokens.createFirst,
    setTokenActive: tokens.setActive,
    setTokenRateLimit: tokens.setRateLimit,
    rotateToken: tokens.rotate,
    touchTokens: tokens.touch,
    createHook: hooks.create,
    keepRecipe: hooks.keepRecipe,
    resealHook: hooks.reseal,
    rotateHook: hooks.rotate,
    reportNode: nodes.report,
    removeNode: nodes.remove,
    forgetNodes: nodes.forgetAll,
    addRefusals: refusals.add,
    acceptRefusal: refusals.accept,
    erase: erasures.erase,
    deleteRefusals: erasures.deleteRefusals,
    setRetentionRule: retention.setRule,
    purgeStep: retention.purgeStep,
    deleteOld: retention.deleteOld,
    forgetPurges: retention.forgetPurges,
    truncateWal: (): boolean => truncateWal(db),
    createOperator: operators.create,
    createFirstOperator: operators.createFirst,
    setOperatorPassword: operators.setPassword,
    setOperatorDisabled: operators.setDisabled,
    setOperatorRole: operators.setRole,
    removeOperator: operators.remove,
    openSession: operators.openSession,
    touchSession: operators.touchSession,
    closeSession: operators.closeSession,
    closeSessions: operators.closeSessions,
    addSignInLink: operators.addLink,
    useSignInLink: operators.useLink,
    addAudit: operators.addAudit,
    pruneOperators: operators.prune,
    claim: processing.claim,
    ack: processing.ack,
    extend: processing.extend,
    release: processing.release,
    requeue: processing.requeue,
    replay: processing.replay,
    createSubscription: subscriptions.create,
    deleteSubscription: subscriptions.remove,
    clearSubscriptions: subscriptions.clear,
    putEndpoint: endpoints.put,
    setCircuit: endpoints.setCircuit,
    removeEndpoint: endpoints.remove,
    addAttempts: endpoints.addAttempts,
    beginEpoch: (now: number): IdGap => inTransaction(db, () => addGap(db, now)),
    probe: (): void =>
      inTransaction(db, () => {
        if (isFrozen(db)) throw new StoreFailure('unavailable', FROZEN)
        db.exec("INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', x'01')")
      }),
  }
}

/** Operations on the index file. */
export function prepareIndexOperations(db: DatabaseSync) {
  const indexing = prepareIndexing(db)
  const erasures = prepareIndexErasures(db)
  const purges = prepareIndexPurges(db)
  return {
    indexStep: indexing.step,
    indexWordsStep: indexing.stepWords,
    /** A damaged index cannot be emptied in steps. */
    indexRebuild: (): void => {
      if (!repairIndex(db)) indexing.requestRebuild()
    },
    clean: erasures.clean,
    followPurges: purges.follow,
    mergeWords: erasures.mergeWords,
    notePurged: erasures.notePurged,
    truncateIndexWal: (): boolean => truncateWal(db),
    repairIndex: (): boolean => repairIndex(db),
    pruneTraffic: (minutesBefore: number, hoursBefore: number): void => pruneTraffic(db, minutesBefore, hoursBefore),
  }
}

export type IndexOperations = ReturnType<typeof prepareIndexOperations>
export type Operations = ReturnType<typeof prepareOperations>
export type OperationName = keyof Operations

export type Calls = Record<string, (...args: never[]) => unknown>

export interface RunOptions {
  readonly transfer?: readonly ArrayBuffer[]
  /** Whose turn the job takes, where holders are served in turn. */
  readonly holder?: string
  /** Cancels the job once its caller is gone. */
  readonly gone?: AbortSignal | undefined
}

export interface Executor<O extends Calls> {
  run<N extends keyof O & string>(
    name: N,
    args: Parameters<O[N]>,
    options?: RunOptions,
  ): Promise<Awaited<ReturnType<O[N]>>>
  onFatal(listener: (failure: Error) => void): void
  close(): Promise<void>
}
