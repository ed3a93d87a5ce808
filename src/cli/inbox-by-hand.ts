// The operator as a processor: claims and settles on the store itself, for whichever tenant, under a key id of its own.

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

/** Where a history tells who it was. No token has such a key id. */
const OPERATOR = 'operator'

export interface OperatorDesk {
  readonly store: Store
  readonly claims: Claims
  readonly operator: Processor
  readonly subscription: string
}

export async function asOperator<T>(
  tenant: Tenant,
  subscription: string,
  work: (desk: OperatorDesk) => Promise<T>,
): Promise<T> {
  const config = loadConfig(process.env)
  return withStore(async (store) => {
    // Nothing here waits, so there is no trouble to tell of: a failure is thrown.
    const onTrouble = () => {}
    const claims = new Claims({
      store: store.processing,
      clock: systemClock,
      maxAttempts: config.maxAttempts,
      maxSubscriptions: config.maxSubscriptions,
      onTrouble,
    })
    try {
      return await work({ store, claims, operator: { ...tenant, keyId: OPERATOR }, subscription })
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

/** What the processing side answers null for. */
export async function known<T>(answer: T | null, { claims, operator, subscription }: OperatorDesk): Promise<T> {
  if (answer !== null) return answer
  const names = (await claims.subscriptions(operator)).map(({ name }) => name)
  throw new CommandError(`There is no subscription ${subscription} of this tenant. There is: ${names.join(', ')}.`)
}
