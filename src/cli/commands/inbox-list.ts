// `./intray inbox list`: lists the events of a tenant, newest first.

import type { EventKind } from '../../model/event.ts'
import { accessPathOf } from '../../model/event-list.ts'
import { eventView } from '../../model/event-view.ts'
import { readCursor, writeCursor } from '../../model/list-cursor.ts'
import type { Tenant } from '../../model/principal.ts'
import { queryWords } from '../../model/text-search.ts'
import { isoTime } from '../../runtime/clock.ts'
import { isoMoment, oneOf, textUpTo, wholeNumber } from '../../runtime/parameter.ts'
import type { EventFilter, EventPosition, ListedEvent } from '../../store/contract/inbox.ts'
import type { Store } from '../../store/contract/store.ts'
import { command, UsageError } from '../command.ts'
import { eventCells } from '../event-cells.ts'
import { flag, JSON_LINES_FLAG, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { noteLag } from '../index-lag.ts'
import { withStore } from '../open.ts'
import { note, outputWidth, print, printJson, table } from '../output.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 10_000
const PAGE_ROWS = 200
const CELL_WIDTH = 28
const MAX_REF = 512

export const inboxList = command({
  about: 'Lists events and revisions of a tenant, newest first. All filters must match.',
  flags: {
    ...TENANT_FLAGS,
    channel: { value: 'C', about: 'Only those of this channel_ref.' },
    email: { value: 'E', about: 'Only those from this e-mail address, in upper or lower case.' },
    'source-ref': { value: 'R', about: 'Only those with this source_ref: the event and its revisions.' },
    after: { value: 'TIME', about: 'Only those received at or after a time such as 2026-11-15T12:00:00Z.' },
    before: { value: 'TIME', about: 'Only those received before a time.' },
    kind: { value: 'K', about: 'Only those of one kind: event or revision.' },
    q: { value: 'WORDS', about: 'Only those with these words, or beginnings of words, in name, e-mail or text.' },
    limit: { value: 'N', about: `1 to ${MAX_LIMIT} events [${DEFAULT_LIMIT}].` },
    cursor: { value: 'C', about: 'Continue an earlier list: it printed the cursor on stderr. Use the same filters.' },
    ...JSON_LINES_FLAG,
  },
  async run(values) {
    const tenant = tenantOf(values)
    const filter: EventFilter = {
      channelRef: flag('channel', values.channel, textUpTo(MAX_REF)),
      contactEmail: flag('email', values.email, textUpTo(320)),
      sourceRef: flag('source-ref', values['source-ref'], textUpTo(MAX_REF)),
      receivedAfter: flag('after', values.after, isoMoment),
      receivedBefore: flag('before', values.before, isoMoment),
      kind: flag('kind', values.kind, oneOf<EventKind>('event', 'revision')),
      words: flag('q', values.q, queryWords),
    }
    const limit = flag('limit', values.limit, wholeNumber(1, MAX_LIMIT)) ?? DEFAULT_LIMIT
    const from = values.cursor === undefined ? null : cursorOf(values.cursor, filter)
    await withStore(async (store) => {
      const { events, next } = await read(store, tenant, filter, from, limit)
      if (values.json) for (const one of events) printJson(eventView(one))
      else print(events.length > 0 ? textOf(events) : 'No events found.\n')
      if (next)
        note(
          `There are more: run it again with --cursor ${writeCursor(isByTime(filter) ? next : { ...next, receivedAt: null })}`,
        )
      await noteLag(store, filter.words !== undefined)
    })
  },
})

/** Reads pages until the limit: a page may end early if few rows match. */
async function read(
  store: Store,
  tenant: Tenant,
  filter: EventFilter,
  from: EventPosition | null,
  limit: number,
): Promise<{ events: ListedEvent[]; next: EventPosition | null }> {
  const events: ListedEvent[] = []
  let next = from
  do {
    const page = await store.inbox.events(tenant, filter, next, Math.min(PAGE_ROWS, limit - events.length))
    events.push(...page.events)
    next = page.next
  } while (next && events.length < limit)
  return { events, next }
}

function textOf(events: readonly ListedEvent[]): string {
  const rows = events.map(({ event, entry }) => [
    String(event.id),
    isoTime(event.receivedAt),
    ...eventCells({ ...event, ...entry }, CELL_WIDTH),
  ])
  return table(['ID', 'RECEIVED', 'CHANNEL', 'CONTACT', 'TEXT'], rows, outputWidth())
}

function cursorOf(text: string, filter: EventFilter): EventPosition {
  const position = readCursor(text)
  if (!position) throw new UsageError('--cursor must be one that an earlier list printed, unchanged.')
  if (isByTime(filter) !== (position.receivedAt !== null)) {
    throw new UsageError('--cursor belongs to a list with other filters. Use the same filters.')
  }
  return position
}

function isByTime(filter: EventFilter): boolean {
  return accessPathOf(filter) === 'time'
}
