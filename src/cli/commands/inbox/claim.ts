// `./intray inbox claim`: claims events under a lease, as a processor does, for work by hand or in a pipe.

import { CLAIM_LIMITS } from '../../../model/processing.ts'
import { claimedEventJson } from '../../../processing/views.ts'
import { isoTime } from '../../../runtime/clock.ts'
import { textUpTo, wholeNumber } from '../../../runtime/parameter.ts'
import type { ClaimedEvent } from '../../../store/contract/processing.ts'
import type { Store } from '../../../store/contract/store.ts'
import { command } from '../../command.ts'
import { eventCells } from '../../inbox/event-cells.ts'
import { flag, JSON_LINES_FLAG, secondsBetween, SUBSCRIPTION_FLAG, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import { noteLag } from '../../inbox/index-lag.ts'
import { withProcessing, requireSubscription, subscriptionOf } from '../../processing-context.ts'
import { note, outputWidth, print, table } from '../../output.ts'

const CELL_WIDTH = 28

const { events, leaseS } = CLAIM_LIMITS

export const inboxClaim = command({
  about: `Claims events under a lease, oldest first. Until the lease ends nobody else gets them. Settle them with 'inbox ack' or 'inbox
release'. Events of one channel are claimed in order; process them in order.`,
  flags: {
    ...TENANT_FLAGS,
    limit: { value: 'N', about: `1 to ${events.max} events [${events.fallback}].` },
    lease: { value: 'TIME', about: `How long the lease lasts: 1s to 12h [${leaseS.fallback}s].` },
    channel: { value: 'C', about: 'Only events of this channel_ref.' },
    unordered: { about: 'Ignore the order inside a channel.' },
    ...SUBSCRIPTION_FLAG,
    ...JSON_LINES_FLAG,
  },
  notes: `With --json the lines have the payload, as in the API: ./intray inbox claim … --json | work | ./intray inbox ack … --stdin

The history of an event names 'operator' as the one who claimed it.`,
  async run(values) {
    const subscription = subscriptionOf(values)
    const command = {
      limit: flag('limit', values.limit, wholeNumber(events.min, events.max)) ?? events.fallback,
      leaseMs: flag('lease', values.lease, secondsBetween(leaseS)) ?? 1000 * leaseS.fallback,
      waitMs: 0,
      ordered: !values.unordered,
      subscription,
      channelRef: flag('channel', values.channel, textUpTo(512)) ?? null,
    }
    await withProcessing(tenantOf(values), subscription, async (context) => {
      const never = new AbortController().signal
      const claimed = await requireSubscription(await context.claims.claim(context.processor, command, never), context)
      if (values.json) for (const one of claimed) process.stdout.write(jsonLine(one))
      else await show(context.store, claimed)
      if (claimed.length < command.limit) await noteLag(context.store)
    })
  },
})

/** JSON strings contain no raw line breaks, so those of a payload stand between tokens and may become spaces. */
function jsonLine(one: ClaimedEvent): string {
  return `${Buffer.concat(claimedEventJson(one))
    .toString()
    .replaceAll(/[\r\n]/g, ' ')}\n`
}

async function show(store: Store, claimed: readonly ClaimedEvent[]): Promise<void> {
  const [first] = claimed
  if (!first) {
    print('There are no events to claim.\n')
    return
  }
  const rows: string[][] = []
  for (const { event, leaseId, attempts } of claimed) {
    const entry = await store.events.indexEntry(event)
    const found = entry ?? { contactName: null, contactEmail: null, snippet: null }
    rows.push([String(event.id), leaseId, String(attempts), ...eventCells({ ...event, ...found }, CELL_WIDTH)])
  }
  print(table(['ID', 'LEASE ID', 'ATTEMPT', 'CHANNEL', 'CONTACT', 'TEXT'], rows, outputWidth()))
  note(
    `The lease ends at ${isoTime(first.leaseExpiresAt)}. Settle with './intray inbox ack ID LEASE_ID' or './intray inbox release ID LEASE_ID'.`,
  )
}
