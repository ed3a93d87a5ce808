// `./intray inbox claim`: takes events under a lease, as a processor does, to work on them by hand or in a pipe.

import { parseArgs } from 'node:util'
import { CLAIM_LIMITS } from '../../model/processing.ts'
import { claimedEventJson } from '../../processing/views.ts'
import { isoTime } from '../../runtime/clock.ts'
import { textUpTo, wholeNumber } from '../../runtime/parameter.ts'
import type { ClaimedEvent } from '../../store/contract/processing.ts'
import type { Store } from '../../store/contract/store.ts'
import type { Subcommand } from '../command.ts'
import { eventCells } from '../event-cells.ts'
import { flag, secondsBetween, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { noteLag } from '../index-lag.ts'
import { asOperator, known, subscriptionOf } from '../inbox-by-hand.ts'
import { note, outputWidth, print, table } from '../output.ts'

const CELL_WIDTH = 28

const HELP = `
Usage: ./intray inbox claim --account N --company M [--limit 10] [--lease 30s] [--channel C] [--unordered]
                            [--subscription default] [--json]

Takes events to work on, the oldest first, under a lease: until it is over nobody else gets them. Then say what became of
them, with ack or release. Events of one channel come in order; work through them in order.

  --limit N         1 to ${CLAIM_LIMITS.events.max} events; ${CLAIM_LIMITS.events.fallback} without it.
  --lease TIME      How long they are yours: 1s to 12h; ${CLAIM_LIMITS.leaseS.fallback}s without it.
  --channel C       Only of this channel_ref.
  --unordered       Every event by itself, for work that needs no order.
  --subscription S  Whose view of the queue; default without it.
  --json            One JSON object a line, with the payload, as in the API:
                    ./intray inbox claim … --json | work | ./intray inbox ack … --stdin

In the history of an event the one who claimed it is 'operator'.`

export const inboxClaim: Subcommand = {
  summary: 'Takes events under a lease, to work on them.',
  help: HELP,
  async run(args) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        ...TENANT_FLAGS,
        limit: { type: 'string' },
        lease: { type: 'string' },
        channel: { type: 'string' },
        unordered: { type: 'boolean' },
        subscription: { type: 'string' },
        json: { type: 'boolean' },
      },
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
    await asOperator(tenantOf(values), subscription, async (desk) => {
      const never = new AbortController().signal
      const claimed = await known(await desk.claims.claim(desk.operator, command, never), desk)
      if (values.json) for (const one of claimed) process.stdout.write(jsonLine(one))
      else await show(desk.store, claimed)
      if (claimed.length < command.limit) await noteLag(desk.store)
    })
    return 0
  },
}

/** A line break of a payload stands between its tokens, since a string of JSON holds none: a blank is the same there. */
function jsonLine(one: ClaimedEvent): string {
  return `${claimedEventJson(one).replaceAll(/[\r\n]/g, ' ')}\n`
}

async function show(store: Store, claimed: readonly ClaimedEvent[]): Promise<void> {
  const [first] = claimed
  if (!first) {
    print('Nothing to claim.\n')
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
    `Yours until ${isoTime(first.leaseExpiresAt)}. When done: inbox ack ID LEASE_ID; if not: inbox release ID LEASE_ID.`,
  )
}
