// `./intray inbox subscription`: lists the subscriptions of a tenant, creates one, or changes its rules.

import { DEFAULT_SUBSCRIPTION, RETRY_LIMITS } from '../../../model/processing.ts'
import { isSubscriptionName } from '../../../processing/commands.ts'
import { subscriptionView } from '../../../processing/views.ts'
import { oneOf, wholeNumber } from '../../../runtime/parameter.ts'
import { command, CommandError, UsageError } from '../../command.ts'
import { flag, JSON_LINES_FLAG, secondsBetween, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import { print, printJson, table } from '../../output.ts'
import { withProcessing } from '../../processing-context.ts'

const { attempts, delayS } = RETRY_LIMITS

export const inboxSubscription = command({
  args: '[NAME]',
  about: `Creates a subscription, or changes what an existing one does with failures. Without NAME it lists those of the tenant. A
flag that is left out changes nothing.`,
  flags: {
    ...TENANT_FLAGS,
    from: { value: 'F', about: 'Where a new one begins: now or beginning [now].' },
    'max-attempts': {
      value: 'N',
      about: `Failed attempts until an event is dead: ${attempts.min} to ${attempts.max} [INTRAY_MAX_ATTEMPTS].`,
    },
    'first-delay': {
      value: 'TIME',
      about: 'Wait after the first failed attempt, doubled after each other one: 1s to 12h [1s].',
    },
    'max-delay': { value: 'TIME', about: 'The longest wait: 1s to 12h [1h].' },
    ...JSON_LINES_FLAG,
  },
  async run(values, args) {
    const [name, ...others] = args
    if (others.length > 0) throw new UsageError('inbox subscription takes at most one NAME.')
    if (name !== undefined && !isSubscriptionName(name))
      throw new UsageError('NAME must be the name of a subscription.')
    const given = {
      from: flag('from', values.from, oneOf<'now' | 'beginning'>('now', 'beginning')),
      maxAttempts: flag('max-attempts', values['max-attempts'], wholeNumber(attempts.min, attempts.max)),
      firstDelayMs: flag('first-delay', values['first-delay'], secondsBetween(delayS)),
      maxDelayMs: flag('max-delay', values['max-delay'], secondsBetween(delayS)),
    }
    if (name === undefined && Object.values(given).some((value) => value !== undefined)) {
      throw new UsageError('The NAME of the subscription is missing.')
    }
    await withProcessing(tenantOf(values), name ?? DEFAULT_SUBSCRIPTION, async ({ claims, processor }) => {
      if (name !== undefined) {
        const { from = 'now', maxAttempts = null, firstDelayMs = null, maxDelayMs = null } = given
        const rules = { maxAttempts, firstDelayMs, maxDelayMs }
        const made = await claims.createSubscription(processor, { name, from, ...rules })
        if (made === null) throw new CommandError('This tenant has INTRAY_MAX_SUBSCRIPTIONS subscriptions already.')
      }
      const all = await claims.subscriptions(processor)
      const shown = all.filter((one) => name === undefined || one.name === name)
      const views = shown.map((one) => subscriptionView(one, claims.rulesOf(one)))
      if (values.json) for (const view of views) printJson(view)
      else {
        const rows = views.map((view) => [
          view.name,
          view.created_at ?? '-',
          String(view.max_attempts),
          `${view.first_delay_s}s`,
          `${view.max_delay_s}s`,
        ])
        print(table(['NAME', 'CREATED', 'MAX ATTEMPTS', 'FIRST DELAY', 'MAX DELAY'], rows))
      }
    })
  },
})
