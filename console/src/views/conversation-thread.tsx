// One conversation as a chat, with the processing state of each event.

import { useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { Fragment, useEffect, useRef, useState } from 'react'
import type { Event } from '../../../kits/typescript/src/schema.ts'
import { flatFields } from '../json/fields.ts'
import { useLiveEvents } from '../live/live.tsx'
import { addressFor, Link } from '../router.tsx'
import { useApi, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { count, Loading, StateMark, Time, ErrorNotice } from '../ui/controls.tsx'

const PAGE_ROWS = 100
/** Longer texts are truncated in lists. */
const SNIPPET_LENGTH = 199
/** A gap of this length is shown. */
const PAUSE_MS = 60 * 60 * 1000

export function ConversationThread({ id, back }: { readonly id: string; readonly back: string }) {
  const api = useApi()
  const queryClient = useQueryClient()
  const path = { id }
  const head = useQuery({
    queryKey: ['conversation', api.tenant, id],
    queryFn: () => api.call('GET /v1/inbox/conversations/{id}', { path }),
  })
  const thread = useInfiniteQuery({
    queryKey: ['thread', api.tenant, id],
    queryFn: ({ pageParam }) =>
      api.call('GET /v1/inbox/conversations/{id}/events', {
        path,
        query: { limit: PAGE_ROWS, ...(pageParam === null ? {} : { cursor: pageParam }) },
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  })
  useLiveEvents((event) => {
    if (String(event.conversation_id) !== id) return
    void queryClient.invalidateQueries({ queryKey: ['thread', api.tenant, id] })
    void queryClient.invalidateQueries({ queryKey: ['conversation', api.tenant, id] })
  })
  const events = thread.data?.pages.flatMap((page) => page.events) ?? []
  const conversation = head.data?.conversation
  const error = head.error ?? thread.error
  return (
    <article className="detail-pane" aria-label={`Conversation ${id}`}>
      <p className="detail-back">
        <Link to={back}>← All conversations</Link>
      </p>
      {conversation && (
        <header className="detail-head">
          <h2>
            <SafeText text={conversation.channel_ref} maxLength={200} />
          </h2>
          <p className="quiet">
            {count(conversation.event_count)} events, {count(conversation.unprocessed)} open, since{' '}
            <Time at={conversation.first_received_at} />
          </p>
        </header>
      )}
      {error ? (
        <ErrorNotice error={error} />
      ) : thread.isPending ? (
        <Loading what="the conversation" />
      ) : (
        <Thread events={events} hasMore={thread.hasNextPage} onMore={() => void thread.fetchNextPage()} />
      )}
    </article>
  )
}

interface ThreadProps {
  readonly events: readonly Event[]
  readonly hasMore: boolean
  readonly onMore: () => void
}

function Thread({ events, hasMore, onMore }: ThreadProps) {
  const scroller = useRef<HTMLElement>(null)
  const virtual = useVirtualizer({
    count: events.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 110,
    overscan: 6,
    getItemKey: (index) => events[index]!.id,
  })
  const items = virtual.getVirtualItems()
  const lastShown = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (hasMore && lastShown >= events.length - 10) onMore()
  }, [hasMore, lastShown, events.length, onMore])
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
    <section ref={scroller} className="thread" tabIndex={0} aria-label="Messages, oldest first">
      <ol style={{ height: virtual.getTotalSize() }}>
        {items.map(({ index, start, key }) => (
          <li key={key} ref={virtual.measureElement} data-index={index} style={{ transform: `translateY(${start}px)` }}>
            <TimeGap earlier={events[index - 1]} event={events[index]!} />
            <Message event={events[index]!} isSameWriter={isSameWriter(events[index - 1], events[index]!)} />
          </li>
        ))}
      </ol>
    </section>
  )
}

/** A line such as `3 hours later`. */
function TimeGap({ earlier, event }: { readonly earlier: Event | undefined; readonly event: Event }) {
  if (!earlier) return null
  const gapMs = Date.parse(event.received_at) - Date.parse(earlier.received_at)
  if (gapMs < PAUSE_MS) return null
  const hours = gapMs / 3_600_000
  return (
    <p className="between">
      {hours < 36 ? `${Math.round(hours)} hours later` : `${Math.round(hours / 24)} days later`}
    </p>
  )
}

function isSameWriter(earlier: Event | undefined, event: Event): boolean {
  return (
    earlier !== undefined &&
    earlier.contact.name === event.contact.name &&
    earlier.contact.email === event.contact.email &&
    Date.parse(event.received_at) - Date.parse(earlier.received_at) < PAUSE_MS
  )
}

function Message({ event, isSameWriter }: { readonly event: Event; readonly isSameWriter: boolean }) {
  const { tenant } = useSession()
  const { name, email } = event.contact
  return (
    <div className="bubble" data-state={event.state ?? undefined}>
      {!isSameWriter && (
        <p className="bubble-who">
          {name || email ? (
            <Fragment>
              {name && <SafeText text={name} maxLength={120} />}{' '}
              {email && (
                <span className="quiet">
                  <SafeText text={email} maxLength={120} />
                </span>
              )}
            </Fragment>
          ) : (
            <i>no name</i>
          )}
        </p>
      )}
      <p className="bubble-text">
        {event.erased_at ? (
          <i>erased</i>
        ) : event.snippet ? (
          <MessageText event={event} snippet={event.snippet} />
        ) : (
          <i>no text{event.message_type ? ` (${event.message_type})` : ''}</i>
        )}
      </p>
      <p className="bubble-foot">
        <Link to={addressFor(tenant, 'events', event.id)}>Event {event.id}</Link>
        <Time at={event.received_at} />
        <StateMark state={event.state} />
        {event.warnings.length > 0 && (
          <span className="warn-mark">
            ⚠ {event.warnings.length} {event.warnings.length === 1 ? 'warning' : 'warnings'}
          </span>
        )}
      </p>
    </div>
  )
}

/** Lists have the beginning of a text; the whole is loaded on demand. */
function MessageText({ event, snippet }: { readonly event: Event; readonly snippet: string }) {
  const api = useApi()
  const [isWhole, setWhole] = useState(false)
  const payload = useQuery({
    queryKey: ['payload', api.tenant, event.id],
    queryFn: () => api.text('GET /v1/inbox/events/{id}/payload', { path: { id: event.id } }),
    staleTime: Infinity,
    enabled: isWhole,
  })
  const whole =
    payload.data === undefined ? undefined : flatFields(payload.data)?.find(({ path }) => path === '/message/text')
  if (whole) return <SafeText text={whole.value} />
  return (
    <>
      <SafeText text={snippet} />
      {snippet.length >= SNIPPET_LENGTH && (
        <button
          type="button"
          className="button quiet-button"
          disabled={payload.isFetching}
          onClick={() => setWhole(true)}
        >
          … show the whole text
        </button>
      )}
    </>
  )
}
