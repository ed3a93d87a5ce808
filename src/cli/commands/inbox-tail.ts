// `./intray inbox tail`: the events of a tenant as they come in, one line each, straight from the store.

import { parseArgs } from 'node:util'
import { type FollowedEvent, followedEventView } from '../../model/followed-event.ts'
import { wholeNumber } from '../../runtime/parameter.ts'
import { Signal } from '../../runtime/signal.ts'
import type { Store } from '../../store/contract/store.ts'
import type { Subcommand } from '../command.ts'
import { eventCells } from '../event-cells.ts'
import { flag, MAX_ID, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { withStore } from '../open.ts'

const LOOK_EVERY_MS = 250
const PAGE_ROWS = 200

const HELP = `
Usage: ./intray inbox tail --account N --company M [--after ID] [--json]

Shows the events of a tenant as they come in, one line each: time, id, channel, contact, text. Ends with Ctrl-C. Events
appear once they are indexed, which a running server does within moments.

  --account N  The account.
  --company M  The company.
  --after ID   Begin after this event; 0: with the first. Without it, with what comes in from now on.
  --json       One JSON object a line, as on the stream.`

export const inboxTail: Subcommand = {
  summary: 'Shows events as they come in.',
  help: HELP,
  async run(args) {
    const { values } = parseArgs({
      args: [...args],
      options: {
        ...TENANT_FLAGS,
        after: { type: 'string' },
        json: { type: 'boolean' },
      },
    })
    const tenant = tenantOf(values)
    const after = flag('after', values.after, wholeNumber(0, MAX_ID)) ?? null
    const format = values.json ? jsonLine : textLine
    await withStore((store) => tail(store, tenant, after, format))
    return 0
  },
}

async function tail(
  store: Store,
  tenant: { accountId: number; companyId: number },
  after: number | null,
  format: (event: FollowedEvent) => string,
): Promise<void> {
  const halt = new Signal()
  const stopped = Promise.withResolvers<void>()
  let isOver = false
  const stop = () => {
    isOver = true
    halt.raise()
    stopped.resolve()
  }
  process.once('SIGINT', stop).once('SIGTERM', stop)
  // Whoever reads us has enough, as in `… | head`.
  process.stdout.on('error', stop)
  let cursor = after ?? (await store.follow.head()).newest
  while (!isOver) {
    const { events, through } = await store.follow.after(tenant, cursor, PAGE_ROWS)
    cursor = through
    // A slow reader is waited for: nothing is read that cannot be written.
    if (events.length > 0) await Promise.race([written(events.map(format).join('')), stopped.promise])
    if (events.length < PAGE_ROWS && !isOver) await halt.wait(LOOK_EVERY_MS)
  }
}

function written(text: string): Promise<void> {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()))
}

function jsonLine(event: FollowedEvent): string {
  return `${JSON.stringify(followedEventView(event))}\n`
}

function textLine(event: FollowedEvent): string {
  const cells = [new Date(event.receivedAt).toISOString(), String(event.id).padStart(8), ...eventCells(event)]
  return `${cells.join('  ').trimEnd()}\n`
}
