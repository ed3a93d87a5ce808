// What the commands of endpoints share: endpoints with the key of secrets, on the store itself, for any tenant.

import type { Config } from '../config.ts'
import type { Tenant } from '../model/principal.ts'
import { AddressGuard } from '../processing/push/address-guard.ts'
import { Endpoints, type Missing } from '../processing/push/endpoints.ts'
import { hasSealedSecrets } from '../processing/push/pushing.ts'
import { createResolver } from '../processing/push/resolver.ts'
import { systemClock } from '../runtime/clock.ts'
import { SecretUnreadable } from '../runtime/secret-box.ts'
import { CommandError, UsageError } from './command.ts'
import { secretsOf } from './hook-store.ts'
import { type ProcessingContext, withProcessing } from './processing-context.ts'

export interface EndpointContext extends ProcessingContext {
  readonly endpoints: Endpoints
}

export async function withEndpoints<T>(
  tenant: Tenant,
  subscription: string,
  config: Config,
  work: (context: EndpointContext) => Promise<T>,
): Promise<T> {
  return withProcessing(tenant, subscription, async (context) => {
    const { store, claims } = context
    const endpoints = new Endpoints({
      store: store.endpoints,
      claims,
      secrets: secretsOf(config),
      hasSealed: () => hasSealedSecrets(store),
      guard: new AddressGuard(config.pushAllow),
      resolve: createResolver(),
      clock: systemClock,
    })
    try {
      return await work({ ...context, endpoints })
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error
      throw new CommandError(
        'The secrets of this endpoint do not open with the key in use. Put back the right key; if it is lost, remove the endpoint and ' +
          'set it again.',
      )
    }
  })
}

/** The result itself, unless something is missing. */
export function present<T>(result: T | Missing, subscription: string): T {
  if (result === 'no_subscription') {
    throw new CommandError(
      `This tenant has no subscription ${subscription}. Create it first: ./intray inbox subscription ${subscription}`,
    )
  }
  if (result === 'no_url') throw new UsageError('A new endpoint needs --url URL.')
  if (result === 'no_endpoint') throw new CommandError(noEndpoint(subscription))
  return result as T
}

export function noEndpoint(subscription: string): string {
  return `The subscription ${subscription} has no endpoint. Set one: ./intray endpoint set --subscription ${subscription} --url URL`
}
