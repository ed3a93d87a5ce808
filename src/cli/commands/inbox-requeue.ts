// `./intray inbox requeue`: brings dead events back. How many they are is told first.

import { parseArgs } from 'node:util'
import { CLAIM_LIMITS } from '../../model/processing.ts'
import { systemClock } from '../../runtime/clock.ts'
import { textUpTo } from '../../runtime/parameter.ts'
import type { DeadFilter } from '../../store/contract/processing.ts'
import { CommandError, type Subcommand, UsageError } from '../command.ts'
import { eventId, flag, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { asOperator, known, type OperatorDesk, subscriptionOf } from '../inbox-by-hand.ts'
import { print, printJson } from '../output.ts'

const HELP = `
Usage: ./intray inbox requeue ID --account N --company M [--subscription default] [--dry-run] [--json]
       ./intray inbox requeue --dead --account N --company M [--channel C] [--subscription default] [--dry-run] [--json]

Brings dead events back: they are pending again, as if they had never been tried. Says first how many are dead.

  --dead            All that are dead.
  --channel C       Of these, only those of this channel_ref.
  --dry-run         Only count them.
  --subscription S  In which view of the queue; default without it.
  --json            Print one JSON object.`

export const inboxRequeue: Subcommand = {
  summary: 'Brings dead events back.',
  help: HELP,
  async run(args) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        ...TENANT_FLAGS,
        dead: { type: 'boolean' },
        channel: { type: 'string' },
        'dry-run': { type: 'boolean' },
        subscription: { type: 'string' },
        json: { type: 'boolean' },
      },
    })
    const { dead = false, json = false, 'dry-run': dryRun = false } = values
    if (dead ? positionals.length > 0 : positionals.length !== 1) {
      throw new UsageError('inbox requeue takes one ID, or --dead for all that are dead.')
    }
    if (!dead && values.channel !== undefined) throw new UsageError('--channel goes with --dead.')
    const id = dead ? null : eventId(positionals[0])
    const channelRef = flag('channel', values.channel, textUpTo(512)) ?? null
    await asOperator(tenantOf(values), subscriptionOf(values), async (desk) => {
      const filter = { ids: id === null ? null : [id], channelRef, deadAfter: null, deadBefore: null }
      const matched = id === null ? await countDead(desk, filter) : await isDead(desk, id)
      if (!json) print(`${matched} dead ${matched === 1 ? 'event' : 'events'} in ${desk.subscription}\n`)
      const requeued = dryRun ? 0 : await requeue(desk, filter, matched)
      if (json) printJson({ dry_run: dryRun, matched, requeued })
      else if (!dryRun && matched > 0) print(`${requeued} brought back\n`)
    })
    return 0
  },
}

async function countDead(desk: OperatorDesk, filter: DeadFilter): Promise<number> {
  return known(await desk.claims.countDead(desk.operator, desk.subscription, filter), desk)
}

/** One that is not dead is told as what it is. */
async function isDead(desk: OperatorDesk, id: number): Promise<number> {
  const { store, operator, subscription } = desk
  const subscriptions = await desk.claims.subscriptions(operator)
  await known(subscriptions.find(({ name }) => name === subscription) ?? null, desk)
  const event = await store.events.find(id, operator)
  if (event?.kind !== 'event') throw new CommandError(`There is no event ${id} of this tenant.`)
  const states = await store.processing.states({ tenant: operator, subscription }, [id], systemClock.now())
  const state = states.get(id) ?? 'pending'
  if (state !== 'dead') throw new CommandError(`Event ${id} is not dead in ${subscription}: it is ${state}.`)
  return 1
}

/** In bounded steps; no more than were counted, since what dies meanwhile was not meant. */
async function requeue(desk: OperatorDesk, filter: DeadFilter, count: number): Promise<number> {
  let done = 0
  while (done < count) {
    const limit = Math.min(CLAIM_LIMITS.requeue.max, count - done)
    const some = await known(await desk.claims.requeue(desk.operator, desk.subscription, filter, limit), desk)
    if (some === 0) break
    done += some
  }
  return done
}
