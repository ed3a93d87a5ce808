// Composes what pushes: the part that delivers, and the part that makes and changes endpoints.

import { type AuditAction, PUSH_SERVICE } from '../../model/operator.ts'
import type { Tenant } from '../../model/principal.ts'
import type { Store } from '../../store/contract/store.ts'
import { AddressGuard } from './address-guard.ts'
import { Endpoints } from './endpoints.ts'
import { Push, type PushOptions } from './push.ts'
import { createResolver } from './resolver.ts'

interface DisabledEndpoint {
  readonly action: AuditAction
  readonly operator: { readonly id: string; readonly name: string }
  readonly tenant: Tenant
  readonly target: string
  readonly origin: { readonly requestId: null; readonly address: null }
}

/** The settings, and the services of the process. */
export interface PushingOptions
  extends Pick<
    PushOptions,
    'claims' | 'secrets' | 'clock' | 'logger' | 'tracing' | 'waiting' | 'onAttempt' | 'onTrouble'
  > {
  readonly store: SealedStore
  readonly pushAllow: readonly string[]
  readonly pushMaxRequests: number
  readonly stopTimeout: number
  readonly audit: (entry: DisabledEndpoint) => Promise<void>
}

interface Pushing {
  readonly push: Push
  readonly endpoints: Endpoints
  readonly hasSealed: () => Promise<boolean>
}

export function createPushing(options: PushingOptions): Pushing {
  const { store, pushAllow, pushMaxRequests, stopTimeout, audit } = options
  const targets = { guard: new AddressGuard(pushAllow), resolve: createResolver() }
  const push = new Push({
    ...options,
    ...targets,
    endpoints: store.endpoints,
    maxRequests: pushMaxRequests,
    stopMs: stopTimeout,
    onDisabled: (tenant, subscription) =>
      audit({
        action: 'endpoint_disable',
        operator: { id: '', name: PUSH_SERVICE },
        tenant,
        target: subscription,
        origin: { requestId: null, address: null },
      }),
  })
  const hasSealed = () => hasSealedSecrets(store)
  const endpoints = new Endpoints({ ...options, ...targets, store: store.endpoints, hasSealed })
  return { push, endpoints, hasSealed }
}

export type SealedStore = Pick<Store, 'endpoints' | 'hooks'>

/** Of endpoints or of hooks: a lost key must not be replaced while there are any. */
export async function hasSealedSecrets({ endpoints, hooks }: SealedStore): Promise<boolean> {
  return (await endpoints.hasSealed()) || (await hooks.list('', 1)).length > 0
}
