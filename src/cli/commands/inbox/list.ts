// `./intray inbox list`: lists the events of a tenant, newest first.

import type { EventKind } from '../../../model/event.ts'
import { accessPathOf } from '../../../model/event-list.ts'
import { eventView } from '../../../model/event-view.ts'
import { readCursor, writeCursor } from '../../../model/list-cursor.ts'
import type { Tenant } from '../../../model/principal.ts'
import { type DeliveryState, STATES } from '../../../model/processing.ts'
import { queryWords } from '../../../model/text-search.ts'
import { isoTime, systemClock } from '../../../runtime/clock.ts'
import { isoMoment, oneOf, textUpTo, wholeNumber } from '../../../runtime/parameter.ts'
import type { EventFilter, EventPosition, ListedEvent } from '../../../store/contract/inbox.ts'
import type { Store } from '../../../store/contract/store.ts'
import { command, UsageError } from '../../command.ts'
import { eventCells } from '../../inbox/event-cells.ts'
import { flag, JSON_LINES_FLAG, SUBSCRIPTION_FLAG, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import { noteLag } from '../../inbox/index-lag.ts'
import { cut, note, outputWidth, print, printable, printJson, table } from '../../output.ts'
import {
  type ProcessingContext,
  requireSubscription,
  subscriptionOf,
  withProcessing,
} from '../../processing-context.ts'

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 10_000
const PAGE_ROWS = 200
const CELL_WIDTH = 28
const ERROR_WIDTH = 60
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
    state: {
      value: 'S',
      about: `Only those in one state of processing: ${STATES.join(', ')}. Dead ones come with their last error.`,
    },
    ...SUBSCRIPTION_FLAG,
    q: { value: 'WORDS', about: 'Only those with these words, or beginnings of words, in name, e-mail or text.' },
    limit: { value: 'N', about: `1 to ${MAX_LIMIT} events [${DEFAULT_LIMIT}].` },
    cursor: { value: 'C', about: 'Continue an earlier list: it printed the cursor on stderr. Use the same filters.' },
    ...JSON_LINES_FLAG,
  },
  async run(values) {
    const tenant = tenantOf(values)
    const state = flag('state', values.state, oneOf<DeliveryState>(...STATES))
    const subscription = subscriptionOf(values)
    if (values.subscription !== undefined && state === undefined) {
      throw new UsageError('--subscription works only with --state. Add --state, or leave it out.')
    }
    const filter: EventFilter = {
      channelRef: flag('channel', values.channel, textUpTo(MAX_REF)),
      contactEmail: flag('email', values.email, textUpTo(320)),
      sourceRef: flag('source-ref', values['source-ref'], textUpTo(MAX_REF)),
      receivedAfter: flag('after', values.after, isoMoment),
      receivedBefore: flag('before', values.before, isoMoment),
      kind: flag('kind', values.kind, oneOf<EventKind>('event', 'revision')),
      state: state && { is: state, subscription, now: systemClock.now() },
      words: flag('q', values.q, queryWords),
    }
    const limit = flag('limit', values.limit, wholeNumber(1, MAX_LIMIT)) ?? DEFAULT_LIMIT
    const from = values.cursor === undefined ? null : cursorOf(values.cursor, filter)
    await withProcessing(tenant, subscription, async (context) => {
      const { store, claims, processor } = context
      const known = await claims.subscriptions(processor)
      await requireSubscription(known.find(({ name }) => name === subscription) ?? null, context)
      const { events, next } = await read(store, tenant, filter, from, limit)
      const errors = state === 'dead' ? await lastErrors(context, events) : undefined
      const errorOf = ({ event }: ListedEvent) => errors && (errors.get(event.id) ?? null)
      if (values.json) for (const one of events) printJson(eventView(one, state, errorOf(one)))
      else print(events.length > 0 ? textOf(events, errors) : 'No events found.\n')
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

async function lastErrors({ store, processor, subscription }: ProcessingContext, events: readonly ListedEvent[]) {
  const { accountId, companyId } = processor
  const ids = events.map(({ event }) => event.id)
  return store.processing.lastErrors({ tenant: { accountId, companyId }, subscription }, ids)
}

function textOf(events: readonly ListedEvent[], errors: ReadonlyMap<number, string> | undefined): string {
  const rows = events.map(({ event, entry }) => {
    const [channel, contact, text] = eventCells({ ...event, ...entry }, CELL_WIDTH)
    const error = errors && [cut(printable(errors.get(event.id) ?? '-'), ERROR_WIDTH)]
    return [String(event.id), isoTime(event.receivedAt), channel, contact, ...(error ?? []), text]
  })
  const header = ['ID', 'RECEIVED', 'CHANNEL', 'CONTACT', ...(errors ? ['LAST ERROR'] : []), 'TEXT']
  return table(header, rows, outputWidth())
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
