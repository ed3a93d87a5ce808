// `./intray inbox claim`: claims events under a lease, as a processor does, for work by hand or in a pipe.

import { CLAIM_LIMITS } from '../../model/processing.ts'
import { claimedEventJson } from '../../processing/views.ts'
import { isoTime } from '../../runtime/clock.ts'
import { textUpTo, wholeNumber } from '../../runtime/parameter.ts'
import type { ClaimedEvent } from '../../store/contract/processing.ts'
import type { Store } from '../../store/contract/store.ts'
import type { Subcommand } from '../command.ts'
import { eventCells } from '../event-cells.ts'
import { flag, JSON_FLAG, parseFlags, secondsBetween, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { noteLag } from '../index-lag.ts'
import { withProcessing, requireSubscription, subscriptionOf } from '../processing-context.ts'
import { note, outputWidth, print, table } from '../output.ts'

const CELL_WIDTH = 28

const HELP = `
Usage: ./intray inbox claim --account N --company N [--limit 10] [--lease 30s] [--channel C] [--unordered]
                            [--subscription default] [--json]

Claims events, oldest first, under a lease: until it ends nobody else gets them. Settle them with 'inbox ack' or 'inbox
release'. Events of one channel are claimed in order; process them in order.

  --limit N         1 to ${CLAIM_LIMITS.events.max} events; ${CLAIM_LIMITS.events.fallback} without it.
  --lease TIME      How long the lease lasts: 1s to 12h; ${CLAIM_LIMITS.leaseS.fallback}s without it.
  --channel C       Only events of this channel_ref.
  --unordered       Ignore the order inside a channel.
  --subscription S  The subscription; default without it.
  --json            Print one JSON object a line, with the payload, as in the API:
                    ./intray inbox claim … --json | work | ./intray inbox ack … --stdin

The history of an event names 'operator' as the one who claimed it.`

export const inboxClaim: Subcommand = {
  summary: 'Claims events under a lease, to process them.',
  help: HELP,
  async run(args) {
    const { values } = parseFlags(args, {
      ...TENANT_FLAGS,
      ...JSON_FLAG,
      limit: { type: 'string' },
      lease: { type: 'string' },
      channel: { type: 'string' },
      unordered: { type: 'boolean' },
      subscription: { type: 'string' },
    })
    const { events, leaseS } = CLAIM_LIMITS
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
    return 0
  },
}

/** JSON strings contain no raw line breaks, so those of a payload stand between tokens and may become spaces. */
function jsonLine(one: ClaimedEvent): string {
  return `${claimedEventJson(one)
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
