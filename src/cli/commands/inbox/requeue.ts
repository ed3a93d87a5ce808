// `./intray inbox requeue`: makes dead events pending again, after printing how many there are.

import { CLAIM_LIMITS } from '../../../model/processing.ts'
import { systemClock } from '../../../runtime/clock.ts'
import { textUpTo } from '../../../runtime/parameter.ts'
import type { DeadFilter } from '../../../store/contract/processing.ts'
import { command, CommandError, UsageError } from '../../command.ts'
import { eventId, flag, JSON_FLAG, SUBSCRIPTION_FLAG, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import {
  withProcessing,
  requireSubscription,
  type ProcessingContext,
  subscriptionOf,
} from '../../processing-context.ts'
import { print, printJson } from '../../output.ts'

export const inboxRequeue = command({
  args: '[ID]',
  about: `Makes dead events pending again, with all their attempts back. Give the ID of one event, or --dead. Prints first how many
are dead.`,
  flags: {
    ...TENANT_FLAGS,
    dead: { about: 'All dead events.' },
    channel: { value: 'C', about: 'With --dead: only those of this channel_ref.' },
    'dry-run': { about: 'Only count them.' },
    ...SUBSCRIPTION_FLAG,
    ...JSON_FLAG,
  },
  async run(values, args) {
    const { dead = false, json = false, 'dry-run': dryRun = false } = values
    if (dead ? args.length > 0 : args.length !== 1) {
      throw new UsageError('inbox requeue takes one ID, or --dead for all dead events.')
    }
    if (!dead && values.channel !== undefined)
      throw new UsageError('--channel works only with --dead. Add --dead, or leave it out.')
    const id = dead ? null : eventId(args[0])
    const channelRef = flag('channel', values.channel, textUpTo(512)) ?? null
    await withProcessing(tenantOf(values), subscriptionOf(values), async (context) => {
      const filter = { ids: id === null ? null : [id], channelRef, deadAfter: null, deadBefore: null }
      const matched = id === null ? await countDead(context, filter) : await isDead(context, id)
      if (!json) print(`${matched} dead ${matched === 1 ? 'event' : 'events'} in ${context.subscription}\n`)
      const requeued = dryRun ? 0 : await requeue(context, filter, matched)
      if (json) printJson({ dry_run: dryRun, matched, requeued })
      else if (!dryRun && matched > 0) print(`${requeued} requeued\n`)
    })
  },
})

async function countDead(context: ProcessingContext, filter: DeadFilter): Promise<number> {
  return requireSubscription(await context.claims.countDead(context.processor, context.subscription, filter), context)
}

/** Throws unless the event exists and is dead. */
async function isDead(context: ProcessingContext, id: number): Promise<number> {
  const { store, processor, subscription } = context
  const subscriptions = await context.claims.subscriptions(processor)
  await requireSubscription(subscriptions.find(({ name }) => name === subscription) ?? null, context)
  const event = await store.events.find(id, processor)
  if (event?.kind !== 'event') throw new CommandError(`This tenant has no event ${id}.`)
  const states = await store.processing.states({ tenant: processor, subscription }, [id], systemClock.now())
  const state = states.get(id) ?? 'pending'
  if (state !== 'dead') throw new CommandError(`Event ${id} is not dead in ${subscription}: it is ${state}.`)
  return 1
}

/** Requeues in bounded steps, and no more events than were counted: events that die meanwhile stay dead. */
async function requeue(context: ProcessingContext, filter: DeadFilter, count: number): Promise<number> {
  let done = 0
  while (done < count) {
    const limit = Math.min(CLAIM_LIMITS.requeue.max, count - done)
    const some = await requireSubscription(
      await context.claims.requeue(context.processor, context.subscription, filter, limit),
      context,
    )
    if (some === 0) break
    done += some
  }
  return done
}
