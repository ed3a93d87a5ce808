// `./intray inbox requeue`: makes dead events pending again, after printing how many there are.

import { CLAIM_LIMITS } from '../../model/processing.ts'
import { systemClock } from '../../runtime/clock.ts'
import { textUpTo } from '../../runtime/parameter.ts'
import type { DeadFilter } from '../../store/contract/processing.ts'
import { CommandError, type Subcommand, UsageError } from '../command.ts'
import { eventId, flag, JSON_FLAG, parseAll, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { withProcessing, requireSubscription, type ProcessingContext, subscriptionOf } from '../processing-context.ts'
import { print, printJson } from '../output.ts'

const HELP = `
Usage: ./intray inbox requeue ID --account N --company N [--subscription default] [--dry-run] [--json]
       ./intray inbox requeue --dead --account N --company N [--channel C] [--subscription default] [--dry-run] [--json]

Makes dead events pending again, with all their attempts back. Prints first how many are dead.

  --dead            All dead events.
  --channel C       With --dead: only those of this channel_ref.
  --dry-run         Only count them.
  --subscription S  The subscription; default without it.
  --json            Print one JSON object.`

export const inboxRequeue: Subcommand = {
  summary: 'Makes dead events pending again.',
  help: HELP,
  async run(args) {
    const { values, positionals } = parseAll(args, {
      ...TENANT_FLAGS,
      ...JSON_FLAG,
      dead: { type: 'boolean' },
      channel: { type: 'string' },
      'dry-run': { type: 'boolean' },
      subscription: { type: 'string' },
    })
    const { dead = false, json = false, 'dry-run': dryRun = false } = values
    if (dead ? positionals.length > 0 : positionals.length !== 1) {
      throw new UsageError('inbox requeue takes one ID, or --dead for all dead events.')
    }
    if (!dead && values.channel !== undefined)
      throw new UsageError('--channel works only with --dead. Add --dead, or leave it out.')
    const id = dead ? null : eventId(positionals[0])
    const channelRef = flag('channel', values.channel, textUpTo(512)) ?? null
    await withProcessing(tenantOf(values), subscriptionOf(values), async (context) => {
      const filter = { ids: id === null ? null : [id], channelRef, deadAfter: null, deadBefore: null }
      const matched = id === null ? await countDead(context, filter) : await isDead(context, id)
      if (!json) print(`${matched} dead ${matched === 1 ? 'event' : 'events'} in ${context.subscription}\n`)
      const requeued = dryRun ? 0 : await requeue(context, filter, matched)
      if (json) printJson({ dry_run: dryRun, matched, requeued })
      else if (!dryRun && matched > 0) print(`${requeued} requeued\n`)
    })
    return 0
  },
}

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

/** In bounded steps, and no more than were counted: events that die meanwhile are left alone. */
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
