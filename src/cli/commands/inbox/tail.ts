// `./intray inbox tail`: prints the events of a tenant as they arrive, read from the store.

import { type FollowedEvent, followedEventView } from '../../../model/followed-event.ts'
import { wholeNumber } from '../../../runtime/parameter.ts'
import { Signal } from '../../../runtime/signal.ts'
import type { Store } from '../../../store/contract/store.ts'
import { command } from '../../command.ts'
import { eventCells } from '../../inbox/event-cells.ts'
import { flag, JSON_LINES_FLAG, MAX_ID, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import { withStore } from '../../open.ts'

const POLL_MS = 250
const PAGE_ROWS = 200

export const inboxTail = command({
  about: `Prints the events of a tenant as they arrive. One line each: time, id, channel, contact, text. Stop it with Ctrl-C. An event
appears once a running server has indexed it.`,
  flags: {
    ...TENANT_FLAGS,
    after: {
      value: 'ID',
      about: 'Start after this event; 0 starts with the first. Without it, only new events are printed.',
    },
    ...JSON_LINES_FLAG,
  },
  async run(values) {
    const tenant = tenantOf(values)
    const after = flag('after', values.after, wholeNumber(0, MAX_ID)) ?? null
    const format = values.json ? jsonLine : textLine
    await withStore((store) => tail(store, tenant, after, format))
  },
})

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
  // The reader has closed the pipe, as in `… | head`.
  process.stdout.on('error', stop)
  let cursor = after ?? (await store.follow.head()).newest
  while (!isOver) {
    const { events, through } = await store.follow.after(tenant, cursor, PAGE_ROWS)
    cursor = through
    // Waits for a slow reader, so that no page is read before the last one is written.
    if (events.length > 0) await Promise.race([written(events.map(format).join('')), stopped.promise])
    if (events.length < PAGE_ROWS && !isOver) await halt.wait(POLL_MS)
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
