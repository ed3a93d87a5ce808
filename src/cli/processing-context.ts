// Lets commands claim and settle events on the store itself, for any tenant, under a key id of their own.

import { loadConfig } from '../config.ts'
import type { Tenant } from '../model/principal.ts'
import { DEFAULT_SUBSCRIPTION } from '../model/processing.ts'
import { Claims, type Processor } from '../processing/claims.ts'
import { isSubscriptionName } from '../processing/commands.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Store } from '../store/contract/store.ts'
import { CommandError } from './command.ts'
import { flag } from './flags.ts'
import { withStore } from './open.ts'

/** Recorded in the history of events. No token has this key id. */
const OPERATOR_KEY_ID = 'operator'

export interface ProcessingContext {
  readonly store: Store
  readonly claims: Claims
  readonly processor: Processor
  readonly subscription: string
}

export async function withProcessing<T>(
  tenant: Tenant,
  subscription: string,
  work: (context: ProcessingContext) => Promise<T>,
): Promise<T> {
  const config = loadConfig(process.env)
  return withStore(async (store) => {
    const claims = new Claims({
      store: store.processing,
      clock: systemClock,
      maxAttempts: config.maxAttempts,
      maxSubscriptions: config.maxSubscriptions,
      // Only long polls use it, and commands do not wait: their failures are thrown.
      onTrouble: () => {},
    })
    try {
      return await work({ store, claims, processor: { ...tenant, keyId: OPERATOR_KEY_ID }, subscription })
    } finally {
      await claims.stop()
    }
  }, config)
}

export function subscriptionOf({ subscription }: { readonly subscription?: string }): string {
  const read = (text: string): string => {
    if (!isSubscriptionName(text)) throw new Error('must be the name of a subscription')
    return text
  }
  return flag('subscription', subscription, read) ?? DEFAULT_SUBSCRIPTION
}

/** Claims answer null for a subscription that does not exist. */
export async function requireSubscription<T>(
  answer: T | null,
  { claims, processor, subscription }: ProcessingContext,
): Promise<T> {
  if (answer !== null) return answer
  const names = (await claims.subscriptions(processor)).map(({ name }) => name)
  throw new CommandError(`This tenant has no subscription ${subscription}. It has: ${names.join(', ')}.`)
}
