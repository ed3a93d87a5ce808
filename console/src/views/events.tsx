// The events view: a live list, newest first, with search and filters; one event beside the list, or instead of it in a
// narrow window.

import { useState } from 'react'
import { SafeText } from '../text/safe-text.tsx'
import { addressFor, type ViewProps } from '../router.tsx'
import type { Event } from '../../../kits/typescript/src/schema.ts'
import { useSession } from '../session.tsx'
import { count, Empty, Loading, StateMark, Time, ErrorNotice } from '../ui/controls.tsx'
import { useShortcuts } from '../ui/keyboard.ts'
import { VirtualList } from '../ui/virtual-list.tsx'
import { EventDetail } from './event-detail.tsx'
import { EventFilters, filtersIn, hasFilters } from './event-filters.tsx'
import { sampleCommand } from './snippets.ts'
import { useEventList } from './use-event-list.ts'

const ROW_HEIGHT = 58

export function Events({ id, query }: ViewProps) {
  const { tenant } = useSession()
  const [isPaused, setPaused] = useState(false)
  const filters = filtersIn(query)
  const list = useEventList(filters, isPaused)
  useShortcuts({ p: () => setPaused((paused) => !paused) })
  const queryRecord = Object.fromEntries([...query].filter(([name]) => name !== 'tab'))
  return (
    <div className="split" data-open={id !== null}>
      <section className="list-pane" aria-label="List of events">
        <EventFilters filters={filters} />
        <TailBar isPaused={isPaused} onPause={setPaused} waiting={list.waiting} partial={list.partial} lag={list.lag} />
        {list.error ? (
          <ErrorNotice error={list.error} onRetry={list.retry} />
        ) : list.isPending ? (
          <Loading what="events" />
        ) : list.events.length === 0 ? (
          <NoEvents filtered={hasFilters(filters)} />
        ) : (
          <VirtualList
            label="Events"
            rows={list.events}
            rowHeight={ROW_HEIGHT}
            keyOf={(event) => event.id}
            addressOf={(event) => addressFor(tenant, 'events', event.id, queryRecord)}
            isOpen={(event) => String(event.id) === id}
            render={(event) => <EventRow event={event} />}
            hasMore={list.hasMore}
            onMore={list.more}
          />
        )}
      </section>
      {id !== null && (
        <EventDetail key={id} id={id} tab={query.get('tab')} back={addressFor(tenant, 'events', null, queryRecord)} />
      )}
    </div>
  )
}

export function EventRow({ event }: { readonly event: Event }) {
  const who = event.contact.name ?? event.contact.email
  return (
    <>
      <span className="row-line">
        <span className="row-who">{who ? <SafeText text={who} maxLength={80} /> : <i>no name</i>}</span>
        <span className="row-marks">
          {event.warnings.length > 0 && (
            <span className="warn-mark">
              ⚠ {event.warnings.length}
              <span className="visually-hidden"> warnings</span>
            </span>
          )}
          {event.origin === 'test' && <span className="tag">test</span>}
          {event.kind === 'revision' ? <span className="tag">revision</span> : <StateMark state={event.state} />}
        </span>
        <span className="row-time">
          <Time at={event.received_at} short />
        </span>
      </span>
      <span className="row-line second">
        <span className="row-id">{event.id}</span>
        <span className="row-text">
          {event.last_error ? (
            <>
              <b>Last error:</b> <SafeText text={event.last_error} maxLength={160} />
            </>
          ) : event.erased_at ? (
            <i>erased</i>
          ) : event.snippet ? (
            <SafeText text={event.snippet} maxLength={160} />
          ) : (
            <i>no text</i>
          )}
        </span>
      </span>
    </>
  )
}

interface TailBarProps {
  readonly isPaused: boolean
  readonly onPause: (paused: boolean) => void
  readonly waiting: number
  readonly partial: boolean
  readonly lag: number
}

function TailBar({ isPaused, onPause, waiting, partial, lag }: TailBarProps) {
  return (
    <div className="tail-bar">
      <button type="button" className="button" aria-pressed={isPaused} onClick={() => onPause(!isPaused)}>
        {isPaused ? '▶ Resume' : '❚❚ Pause'}
      </button>
      <span role="status" className="quiet">
        {isPaused ? `Paused. ${count(waiting)} new.` : 'Live: new events appear at the top.'}
        {lag > 0 && ` ${count(lag)} are not indexed yet.`}
        {partial && ' Only part of the events was searched: scroll for more.'}
      </span>
    </div>
  )
}

function NoEvents({ filtered }: { readonly filtered: boolean }) {
  if (filtered) return <Empty title="No events match these filters" />
  return (
    <Empty title="No events yet" command={sampleCommand(window.location.origin)}>
      <p>Send the first message with a token of this tenant. It appears here at once.</p>
    </Empty>
  )
}
